"""The client of examples/ is what the OpenAPI document says, and the notebook beside it runs."""

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.main import create_app
from service.settings import Settings
from tests.bench.server_process import ServerProcess
from tests.client.generate import CLIENT, client_text, type_text
from tests.client.notebook import NOTEBOOK, PAGE, importable, read, rendered, run, source


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> Iterator[ServerProcess]:
    path = tmp_path_factory.mktemp("client") / "served.sqlite"
    shutil.copy(seeded_template, path)
    server = ServerProcess(f"sqlite:///{path}", path.with_suffix(".log"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def module() -> Any:
    with importable(CLIENT.parent):
        return importlib.import_module(CLIENT.stem)


def test_the_client_is_current() -> None:
    document = create_app(Settings()).openapi()
    assert CLIENT.read_text(encoding="utf-8") == client_text(document), "python -m tests.client.generate"


def test_models_of_one_name_are_refused() -> None:
    """Their long names would be what everybody's generator has to show."""
    document = {
        "paths": {},
        "components": {"schemas": {"service__wire__a__OneOut": {}, "service__wire__b__OneOut": {}}},
    }
    with pytest.raises(ValueError, match="names of their own"):
        client_text(document)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "Any"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Page_DeviceOut_"}}, "list[PageDeviceOut]"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "string", "format": "date"}]}, "str | None"),
        ({"anyOf": [{"type": "null"}, {}]}, "Any"),
        ({"const": "profile", "type": "string"}, 'Literal["profile"]'),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "additionalProperties": True}, "dict[str, Any]"),
    ],
)
def test_schemas_as_annotations(schema: dict[str, Any], text: str) -> None:
    assert type_text(schema) == text


class TestAgainstAService:
    @pytest.fixture
    def client(self, server: ServerProcess, module: Any) -> Iterator[Any]:
        with module.Client(server.address) as client:
            yield client

    def test_lists_are_walked_to_their_end(self, client: Any) -> None:
        first = client.get_offers(limit=10)
        assert len(first["items"]) == 10
        assert sum(1 for _ in client.every(client.get_offers)) == first["total"] > 500

    def test_names_in_addresses_are_quoted_and_flags_sent(self, client: Any) -> None:
        offer = client.get_offer("aws:p5en.48xlarge:us-east-1:on_demand")
        assert offer["named_place"] is True
        named, unnamed, both = (
            client.get_offers(provider="aws", named_place=flag)["total"] for flag in (True, False, None)
        )
        assert named > unnamed
        assert named + unnamed == both

    def test_a_refusal_is_raised_with_its_document(self, client: Any, module: Any) -> None:
        with pytest.raises(module.Problem, match="h100-sxm") as refused:
            client.get_device("h100-sx")
        assert refused.value.status == 404
        assert "h100-sxm" in refused.value.document["close_matches"]

    def test_files_are_bytes(self, client: Any) -> None:
        assert client.get_metrics().startswith(b"#")

    def test_a_job_is_waited_for(self, client: Any, module: Any) -> None:
        request: dict[str, Any] = {
            "workloads": [
                {
                    "name": "chat", "llm": "llama-3.1-8b",
                    "traffic": {"requests_per_s": 5, "prompt_tokens": 500, "output_tokens": 100},
                    "targets": {"ttft_ms": 1000},
                }
            ],
            "limits": {"devices": ["l40s"], "providers": ["aws"]},
        }  # fmt: skip
        queued = client.post_recommendation(request, prefer="respond-async", idempotency_key="client-job")
        assert queued["id"].startswith("job_")
        answer = client.finished(queued, poll_s=0.1)
        assert answer["plan"]
        assert client.post_recommendation(request, idempotency_key="client-job")["id"] == answer["id"]
        assert client.finished(answer) is answer
        with pytest.raises(module.Problem, match="409"):
            client.post_recommendation(request | {"alternatives": 0}, idempotency_key="client-job")


class TestNotebook:
    def test_its_cells_run(self, server: ServerProcess) -> None:
        """What they print moves with the catalog; that each says as much as in the page does not."""
        stored, again = read(), run(read(), server.address)
        for before, after in zip(stored["cells"], again["cells"], strict=True):
            if before["cell_type"] == "code":
                kinds = [output["output_type"] for output in before["outputs"]]
                assert [output["output_type"] for output in after["outputs"]] == kinds, source(before)

    def test_a_cell_that_fails_fails(self, server: ServerProcess) -> None:
        broken = read()
        broken["cells"].append({"cell_type": "code", "source": ["client.get_device('none')"], "outputs": []})
        with pytest.raises(Exception, match="404"):
            run({"cells": [broken["cells"][1], broken["cells"][-1]]}, server.address)

    def test_it_is_stored_with_its_outputs_and_the_page_shows_them(self) -> None:
        notebook = read()
        shown = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell["outputs"]]
        assert len(shown) >= 8
        assert PAGE.read_text(encoding="utf-8") == rendered(notebook), (
            f"{NOTEBOOK.name}: python -m tests.client.notebook"
        )
