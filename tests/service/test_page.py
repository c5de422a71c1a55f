"""What a browser is served at / and /docs, without one: no other address, nothing inline, only routes that exist."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.deployments.targets import ENGINE_TARGETS, TARGET_OF_ENGINE
from service.page.routes import FILES

SCRIPTS = sorted(FILES.glob("*.js"))
ELSEWHERE = re.compile(r"""(?:https?:)?//(?!www\.w3\.org/)[a-z0-9.-]+\.[a-z]{2,}""")


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_documents_allow_nothing_inline_and_nothing_from_elsewhere(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*src=)|<style|\son[a-z]+=|\sstyle=", answer.text)
    for address in re.findall(r'(?:src|href)="([^"#]+)"', answer.text):
        assert client.get(address).status_code == 200, address


def test_nothing_names_another_host() -> None:
    found = {path.name: ELSEWHERE.findall(path.read_text(encoding="utf-8")) for path in FILES.iterdir()}
    assert {name: hosts for name, hosts in found.items() if hosts} == {}


def test_every_route_that_the_page_calls_is_a_public_one(app: FastAPI) -> None:
    public = [re.sub(r"\{[^}]*\}", "[^/]+", path) for path in app.openapi()["paths"]]
    called = {
        re.sub(r"\$\{[^}]*\}", "x", address)
        for path in SCRIPTS
        for address in re.findall(r"[\"`](/v1/[^\"`?]*)", path.read_text(encoding="utf-8"))
    }
    called = {
        address for address in called if not address.startswith("/v1/x")
    }  # lists of the catalog, by what is shown
    assert len(called) > 10
    assert {address for address in called if not any(re.fullmatch(route, address) for route in public)} == set()


def test_every_module_that_is_imported_is_served(client: TestClient) -> None:
    for path in SCRIPTS:
        for name in re.findall(r'from "\./([^"]+)"', path.read_text(encoding="utf-8")):
            assert client.get(f"/page/{name}").status_code == 200


def test_files_are_compressed_and_asked_for_again(client: TestClient) -> None:
    answer = client.get("/page/answer.js", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Cache-Control"] == "no-cache"
    again = client.get("/page/answer.js", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["/page/none.js", "/page/../routes.py", "/page/%2e%2e/routes.py", "/docs/ui/none"])
def test_other_files_are_not_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_page_shows_steps_of_the_engines_whose_files_state_them() -> None:
    (named,) = re.findall(r"COMMANDS_WRITTEN = \[([^\]]*)\]", (FILES / "answer.js").read_text(encoding="utf-8"))
    engine_of = {target: engine for engine, target in TARGET_OF_ENGINE.items()}
    assert re.findall(r'"([^"]+)"', named) == [engine_of.get(target, target) for target in ENGINE_TARGETS]
