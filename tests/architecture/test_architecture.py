"""The rules of the house, as tests."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import catalog
import migrations
import service
import solver
from catalog.rows import DeviceRow, LlmAttentionRow, LlmFeedForwardRow, LlmRow, LlmVisionRow, NodeRow, ProviderRow
from service.openapi_document import PARAMETERS
from service.settings import PREFIX, Settings
from service.wire import quantities
from service.wire.devices import DeviceOut
from service.wire.field_descriptions import descriptions
from service.wire.llms import AttentionOut, FeedForwardOut, LlmOut, VisionOut
from service.wire.nodes import NodeOut
from service.wire.providers import ProviderOut
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS
from solver.workload import PERCENTILES
from tests.architecture.openapi_outline import GOLDEN, openapi, outline

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 450


def sources(*folders: str) -> list[Path]:
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))


class TestImports:
    def test_contracts_hold(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize("package", [catalog, migrations, service, solver])
    def test_names_resolve_inside_the_checkout(self, package: object) -> None:
        assert Path(str(getattr(package, "__file__", ""))).resolve().is_relative_to(ROOT)

    def test_serving_loads_no_heavy_library_before_it_is_needed(self) -> None:
        code = "import sys, service.main; print(sorted({'scipy', 'pulp', 'highspy'} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestFiles:
    @pytest.mark.parametrize("path", sources("service", "solver", "catalog", "migrations"), ids=str)
    def test_have_one_job_and_say_it(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= MOST_LINES
        assert path.stem not in {"utils", "helpers", "common", "models"}
        if text.strip():
            assert ast.get_docstring(ast.parse(text)), "a module says what it is for"


class TestNames:
    def test_a_class_name_stands_once(self) -> None:
        """In solver/ and service/ together: whoever searches for it finds one thing. Wire shapes end in ``In`` and ``Out``."""
        where: dict[str, list[str]] = {}
        for path in sources("service", "solver"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    where.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
        assert len(where) > 500
        assert {name: files for name, files in where.items() if len(files) > 1} == {}

    def test_a_choice_is_stated_once_in_the_solver(self) -> None:
        """Two names of the same literals drift apart."""
        where: dict[str, list[str]] = {}
        for path in sources("solver"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
                if isinstance(value, ast.Subscript) and ast.unparse(value.value) == "Literal":
                    where.setdefault(ast.unparse(value), []).append(str(path.relative_to(ROOT)))
        assert len(where) > 10
        assert {choice: files for choice, files in where.items() if len(files) > 1} == {}


UNIT = re.compile(
    r"(_ms|_s|_usd|_gib|_gb|_mb|_bytes|_gb_per_s|_gbit_per_s|_tflop_per_s|_top_per_s|_w|_kw|_tokens|_tokens_per_s|_percent"
    r"|_fraction|_per_hour|_per_month|_per_s|_per_token|_per_sequence|_per_device|_tokens_limit|_days"
    r"|_gb_marketed|_output_token|_output_tokens|_per_kwh|_kwh)$"
)
QUANTITY = re.compile(r"bandwidth|latency|price|memory|power|energy|capacity|duration|throughput")
NOT_QUANTITIES = {
    "price", "price_as_of", "memory", "power_w_mean",
    "memory_class", "memory_type", "power_basis", "max_power_kw", "usd_per_device_hour",
    "price_confidence", "min_price_confidence", "price_source",
    "memory_gb_marketed", "joules_per_output_token", "capacity_requests_per_s", "power_usage_effectiveness",
}  # fmt: skip


class TestUnits:
    def properties(self) -> Iterator[str]:
        for schema in openapi()["components"]["schemas"].values():
            yield from schema.get("properties", {})

    def test_quantities_on_the_wire_carry_their_unit(self) -> None:
        bare = {p for p in self.properties() if QUANTITY.search(p) and not UNIT.search(p)} - NOT_QUANTITIES
        assert bare == set()

    def test_quantities_in_the_solver_are_in_base_units(self) -> None:
        derived = re.compile(r"_(gib|gb|mb|ms|us|tflop_per_s|gb_per_s|gbit_per_s|kw|percent)$")
        allowed = {"gib"}
        found = []
        for path in sources("solver"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    name = node.target.id
                elif isinstance(node, ast.arg):
                    name = node.arg
                else:
                    continue
                if derived.search(name) and name not in allowed:
                    found.append(f"{path.name}: {name}")
        assert found == []


class TestWire:
    def test_formats_and_percentiles_are_the_solvers(self) -> None:
        assert set(quantities.WeightFormat.__args__) == set(WEIGHT_FORMATS)
        assert set(quantities.KvCacheFormat.__args__) == set(KV_CACHE_BYTES)
        assert quantities.PERCENTILES == PERCENTILES

    @pytest.mark.parametrize(
        ("row", "shown"),
        [
            (DeviceRow, DeviceOut),
            (NodeRow, NodeOut),
            (ProviderRow, ProviderOut),
            (LlmRow, LlmOut),
            (LlmAttentionRow, AttentionOut),
            (LlmFeedForwardRow, FeedForwardOut),
            (LlmVisionRow, VisionOut),
        ],
    )
    def test_every_catalog_figure_is_shown(self, row: type, shown: type) -> None:
        assert set(row.model_fields) <= set(shown.model_fields)

    def test_answers_have_no_defaults(self) -> None:
        schemas = openapi()["components"]["schemas"]
        with_defaults = {
            f"{name}.{field}"
            for name, schema in schemas.items()
            if name.endswith("Out")
            for field, about in schema.get("properties", {}).items()
            if "default" in about
        }
        assert with_defaults == set()


class TestDocuments:
    def test_every_route_is_documented(self) -> None:
        text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
        missing = [
            f"{method.upper()} {path}"
            for path, methods in openapi()["paths"].items()
            for method in methods
            if f"`{method.upper()} {path}`" not in text
        ]
        assert missing == []

    def test_every_setting_is_documented_with_its_default(self) -> None:
        text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
        for name, field in Settings.model_fields.items():
            line = next((row for row in text.splitlines() if f"`{PREFIX}{name.upper()}`" in row), "")
            value = field.default
            shown = f"{value:.10g}" if isinstance(value, int | float) else str(value)
            assert line, name
            assert ("none" if value is None else f"`{shown}`") in line, name

    def test_the_contract_changes_only_on_purpose(self) -> None:
        golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
        assert outline() == golden, "intended? python -m tests.architecture.openapi_outline"


class TestRoutes:
    def test_every_router_asks_who_it_is_before_it_reads_a_body(self) -> None:
        unguarded = [
            str(path.relative_to(ROOT))
            for path in sorted((ROOT / "service").rglob("*.py"))
            for line in path.read_text(encoding="utf-8").splitlines()
            if "APIRouter(" in line and "import" not in line and "route_class=GuardedRoute" not in line
        ]
        assert unguarded == []


class TestDescriptions:
    def fields(self) -> Iterator[tuple[str, str, dict[str, object]]]:
        for model, schema in openapi()["components"]["schemas"].items():
            for name, about in schema.get("properties", {}).items():
                yield model, name, about

    def test_every_field_says_what_it_is(self) -> None:
        assert [f"{model}.{name}" for model, name, about in self.fields() if not about.get("description")] == []

    def parameters(self) -> Iterator[tuple[str, dict[str, object]]]:
        for path, item in openapi()["paths"].items():
            for route in item.values():
                for about in route.get("parameters", ()):
                    yield f"{path} {about['name']}", about

    def test_every_parameter_says_what_it_is(self) -> None:
        assert [name for name, about in self.parameters() if not about.get("description")] == []

    def test_quantities_say_their_unit(self) -> None:
        units = {
            r"_ms$": r"\bms\b", r"_s$": r"\bs\b|second", r"_gib$": "GiB", r"_tokens$": "[Tt]oken", r"_kw$": "kW",
            r"_w$": r"\bW\b", r"_hours$": "[Hh]ours", r"_months$": "[Mm]onth", r"_percent$": "per cent|%",
            r"_fraction$": "[Ss]hare|0 to 1|[Uu]tilisation", r"(^|_)usd(_|$)": "US dollar|currency",
        }  # fmt: skip
        silent = {
            f"{model}.{name}"
            for model, name, about in self.fields()
            for ending, unit in units.items()
            if re.search(ending, name) and not re.search(unit, str(about.get("description")))
        }
        assert silent == set()

    def test_no_description_is_of_a_field_that_is_gone(self) -> None:
        named = {name for _, name, _ in self.fields()}
        models = {model.rsplit("__", 1)[-1] for model, _, _ in self.fields()}
        known = dict(descriptions())
        assert set(known.pop(PARAMETERS)) <= {str(about["name"]) for _, about in self.parameters()}
        gone = {name for name, text in known.items() if isinstance(text, str) and name not in named}
        gone |= {
            f"{model}.{name}"
            for model, own in known.items()
            if isinstance(own, dict)
            for name in own
            if name not in named
        }
        gone |= {
            model for model, own in known.items() if isinstance(own, dict) and model.rsplit(".", 1)[-1] not in models
        }
        assert gone == set()
