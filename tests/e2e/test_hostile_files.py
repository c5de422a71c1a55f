"""Files that try to end the process, or to keep it busy: refused quickly, and the process that was asked goes on."""

import json
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.bench.server_process import ServerProcess

JSON = {"content-type": "application/json"}
REFUSED_WITHIN_S = 15.0
"""Slack for a busy machine; the bar of 2 s is measured by ``python -m tests.hostile.corpus``."""
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "benchmarks"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> Iterator[ServerProcess]:
    path = tmp_path_factory.mktemp("hostile") / "served.sqlite"
    shutil.copy(seeded_template, path)
    server = ServerProcess(f"sqlite:///{path}", path.with_suffix(".log"))
    server.start()
    yield server
    server.stop()


def imported(server: ServerProcess, payload: object, path: str = "/v1/benchmarks/import") -> httpx.Response:
    body = {"payload": payload}
    if path == "/v1/offers/import":
        body |= {"valid_from": "2026-11-01T00:00:00Z", "source": "a hostile list", "provider": "own"}
    began = time.monotonic()
    answer = httpx.post(f"{server.address}{path}", json=body, timeout=120)
    assert time.monotonic() - began < REFUSED_WITHIN_S
    assert httpx.get(f"{server.address}/healthz", timeout=10).status_code == 200
    return answer


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text[:500]
    document = answer.json()
    assert document["errors"][0]["pointer"].startswith("/payload")
    return str(document["errors"][0]["detail"])


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 40_000, "a: " + "{a: " * 40_000, "---\n" + "- " * 40_000, "a: " + "[" * 40_000 + "]" * 40_000,
     "\n".join(" " * n + "a:" for n in range(900))],
    ids=["sequences", "mappings", "block", "closed", "indented"],
)  # fmt: skip
def test_nested_yaml_is_refused_by_depth(server: ServerProcess, text: str) -> None:
    assert "nested deeper than 60" in refusal(imported(server, text))


def test_the_same_process_still_reads_files(server: ServerProcess) -> None:
    before = server.pid
    payload = (FIXTURES / "inference_perf.yaml").read_text()
    answer = imported(server, payload)
    assert "payload" not in json.dumps(answer.json().get("errors", [])), answer.text[:500]
    assert server.pid == before


@pytest.mark.parametrize(
    "payload",
    [
        "a: " + ":".join(["59"] * 200_000), "a: 0x" + "f" * 900_000, "a: " + "1" * 900_000, "- " * 50 + "1\n",
        "a,b\n1,2\n\n" * 400_000, "\n" * 7_000_000, "a,b\n" + "1,2\n" * 1_000_000, "," * 4_000_000,
        "".join(f"k{n}: 1\n" for n in range(90_000)), "a: !!int 0x" + "f" * 100_000, "a: &a [1]\nb: *a\n",
        "[" + "[]," * 2_000_000 + "[]]", "[" + '{"":0},' * 1_000_000 + "0]", "{}\n" * 2_000_000,
    ],
    ids=["sexagesimal", "hexadecimal", "decimal", "dashes", "blocks", "blank-lines", "rows", "columns", "mapping", "tagged",
         "alias", "empty-lists", "small-objects", "json-lines"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/benchmarks/import", "/v1/offers/import"])
def test_files_that_burn_are_refused_quickly(server: ServerProcess, path: str, payload: str) -> None:
    refusal(imported(server, payload, path))


@pytest.mark.parametrize(
    "body",
    ['{"payload": [' + "[]," * 5_000_000 + "[]]}", '{"payload": [' + '{"":0},' * 1_500_000 + "0]}",
     '{"payload": {' + '"":{},' * 2_000_000 + '"":0}}'],
    ids=["lists", "objects", "members"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/benchmarks/import", "/v1/offers/import", "/v1/fleets"])
def test_bodies_of_too_many_values_are_refused_before_they_are_built(
    server: ServerProcess, path: str, body: str
) -> None:
    before = resident_bytes(server.pid)
    answer = httpx.post(f"{server.address}{path}", content=body, headers=JSON, timeout=60)
    assert answer.status_code == 413, answer.text[:300]
    assert "values" in answer.json()["detail"]
    assert resident_bytes(server.pid) - before < 100_000_000


@pytest.mark.parametrize("depth", [150, 400, 900, 5_000, 100_000])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
@pytest.mark.parametrize("path", ["/v1/benchmarks/import", "/v1/offers/import", "/v1/llms", "/v1/estimates"])
def test_deep_bodies_are_refused(server: ServerProcess, path: str, bracket: str, depth: int) -> None:
    opened, closed = ("[", "]") if bracket == "[]" else ('{"a":', "}")
    nested = opened * depth + ("0" if bracket == "{}" else "") + closed * depth
    answer = httpx.post(f"{server.address}{path}", content='{"payload": ' + nested + "}", headers=JSON, timeout=60)
    assert answer.status_code in (400, 413), answer.text[:300]
    assert "nested" in answer.text or "too many values" in answer.text


def resident_bytes(pid: int) -> int:
    """Of the process itself, not of those that read files for it."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
