"""What a hostile service, or an editor's stolen token, asks of a GPU host: nothing outside the allow-list is started."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.agent.allowed_arguments import ALLOWED, checked_arguments
from service.agent.cli import main
from service.agent.launch import EngineStart, LaunchError, serve_command

WANTED: dict[str, Any] = {
    "device": "h200-sxm", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16", "kv_cache": "bf16"},
    "layout": {"tensor_parallel": 1, "pipeline_parallel": 1, "data_parallel": 1, "expert_parallel": 1},
    "engine": {"name": "vllm", "arguments": []},
    "traffic": {
        "prompt_tokens": {"distribution": "fixed", "tokens": 16},
        "output_tokens": {"distribution": "fixed", "tokens": 10},
    },
    "loads": [{"kind": "closed", "concurrency": 1, "requests": 1}],
}  # fmt: skip
LLM: dict[str, Any] = {"hugging_face_id": "meta-llama/Llama-3.1-8B", "vocabulary": 128_256}


class HostileService:
    """A service of which every word may be chosen. Remembers what the agent told it."""

    def __init__(self) -> None:
        self.wanted: Any = WANTED
        self.llm: Any = LLM
        self.id: Any = "meas_1"
        self.told: list[tuple[str, Any]] = []
        self._leased = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(service.llm)

            def do_PUT(self) -> None:
                self._read()
                self._answer({})

            def do_POST(self) -> None:
                body = self._read()
                if not self.path.endswith("/lease"):
                    service.told.append((self.path, body))
                    self._answer({})
                elif service._leased:
                    self.send_response(204)
                    self.end_headers()
                else:
                    service._leased = True
                    self._answer({"lease": "lease_1", "measurement": {"id": service.id, "wanted": service.wanted}})

            def _read(self) -> Any:
                return json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"null")

            def _answer(self, document: Any) -> None:
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hostile() -> Iterator[HostileService]:
    service = HostileService()
    yield service
    service.close()


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vllm that writes down each command line it is started with, and ends."""
    package = tmp_path / "installed" / "vllm" / "entrypoints" / "cli"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("")
    record = tmp_path / "started.jsonl"
    (package / "main.py").write_text(
        f"import json, sys\nopen({str(record)!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\nsys.exit(1)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    return record


def worked(hostile: HostileService, folder: Path, *more: str) -> int:
    return main(
        ["work", "--url", hostile.address, "--spool", str(folder / "spool"), "--once", "--device", "h200-sxm",
         "--devices", "1", "--agent-id", "host", *more]
    )  # fmt: skip


def command_lines(started: Path) -> list[list[str]]:
    return [json.loads(line) for line in started.read_text().splitlines()] if started.exists() else []


@pytest.mark.parametrize(
    "arguments",
    [["--trust-remote-code"], ["--trust-remote-code", "--model", "attacker/repo"], ["--model=attacker/repo"],
     ["--trust_remote_code"], ["--trust-remote"], ["--hf-config-path", "attacker/repo"], ["--tokenizer", "attacker/repo"],
     ["--host", "0.0.0.0"], ["--chat-template", "/etc/passwd"], ["--download-dir=/"], ["-tp", "1"], ["attacker/repo"],
     ["--max-num-seqs", "64", "attacker/repo"], ["--max-num-seqs=--trust-remote-code"], ["--enforce-eager=1"],
     ["--worker-cls", "os.system"], ["--compilation-config", '{"backend": "os.system"}'], ["--config", "/tmp/x.yaml"],
     ["--max-num-seqs", "64;id"], ["--max-num-seqs", "64\n--trust-remote-code"], ["--load-format", "dummy"], ["--"]],
    ids=" ".join,
)  # fmt: skip
def test_arguments_outside_the_list_start_nothing(
    hostile: HostileService, started: Path, tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    hostile.wanted = WANTED | {"engine": {"name": "vllm", "arguments": arguments}}
    assert worked(hostile, tmp_path) == 0
    assert command_lines(started) == []
    path, body = hostile.told[-1]
    assert path == "/v1/measurements/meas_1/fail"
    assert "refused engine arguments" in body["reason"]
    assert "--allow-argument" in body["reason"]
    assert "refused" in "".join(capsys.readouterr())


def test_performance_options_are_passed_on(hostile: HostileService, started: Path, tmp_path: Path) -> None:
    hostile.wanted = WANTED | {"engine": {"name": "vllm", "arguments": ["--max-num-seqs", "64", "--enforce-eager"]}}
    assert worked(hostile, tmp_path) == 0
    (command,) = command_lines(started)
    assert command[:2] == ["serve", "meta-llama/Llama-3.1-8B"]
    assert command[-2:] == ["--max-num-seqs=64", "--enforce-eager"]


def test_the_host_allows_more_by_name(hostile: HostileService, started: Path, tmp_path: Path) -> None:
    hostile.wanted = WANTED | {"engine": {"name": "vllm", "arguments": ["--load-format", "dummy"]}}
    assert worked(hostile, tmp_path, "--allow-argument=--load-format") == 0
    assert command_lines(started)[0][-1] == "--load-format=dummy"


@pytest.mark.parametrize(
    "model",
    [
        "--trust-remote-code",
        "/etc",
        "../../other",
        "https://evil.example/model",
        "s3://bucket/model",
        "a/b/c",
        7,
        "a b",
    ],
)
def test_models_that_are_no_hugging_face_id_start_nothing(
    hostile: HostileService, started: Path, tmp_path: Path, model: Any
) -> None:
    hostile.llm = LLM | {"hugging_face_id": model}
    assert worked(hostile, tmp_path) == 0
    assert command_lines(started) == []
    assert "refused the model" in hostile.told[-1][1]["reason"]


@pytest.mark.parametrize(
    "changed",
    [{"layout": {"tensor_parallel": "--trust-remote-code"}}, {"layout": {"tensor_parallel": 1, "model": "attacker/repo"}},
     {"precision": {"weights": ["bf16"], "kv_cache": "bf16"}}, {"engine": "vllm"}, {"traffic": None}, {"loads": []},
     {"loads": [{"kind": "closed", "concurrency": 10**9}]}, {"llm": "../../v1/tokens"}, {"devices": "all"},
     {"traffic": {"prompt_tokens": {"distribution": "fixed", "tokens": 100_000_000},
                  "output_tokens": {"distribution": "fixed", "tokens": 10}}}],
    ids=json.dumps,
)  # fmt: skip
def test_measurements_of_another_shape_are_told_and_work_goes_on(
    hostile: HostileService, started: Path, tmp_path: Path, changed: dict[str, Any]
) -> None:
    hostile.wanted = WANTED | changed
    assert worked(hostile, tmp_path) == 0
    assert command_lines(started) == []
    assert hostile.told[-1][0].endswith("/fail")
    assert "refused" in hostile.told[-1][1]["reason"]


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "a/b", "", None, "x" * 500])
def test_an_id_that_is_a_path_names_no_file(
    hostile: HostileService, started: Path, tmp_path: Path, name: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile.id = name
    assert worked(hostile, tmp_path) == 0
    assert command_lines(started) == []
    assert not list(tmp_path.rglob("escaped*"))
    assert "refused the measurement" in "".join(capsys.readouterr())


WORDS = st.one_of(
    st.sampled_from([*ALLOWED, "--trust-remote-code", "--model", "--tokenizer", "--config", "--host"]),
    st.from_regex(r"--?[a-z_-]{0,12}(=.{0,8})?", fullmatch=True), st.text(max_size=12), st.integers().map(str),
)  # fmt: skip


@given(st.lists(WORDS, max_size=6))
def test_whatever_is_passed_on_is_on_the_list_with_a_value_of_its_kind(arguments: list[str]) -> None:
    try:
        passed = checked_arguments(arguments)
    except LaunchError:
        return
    for word in passed:
        name, _, value = word.partition("=")
        assert name in ALLOWED
        assert ALLOWED[name].fullmatch(value)


@pytest.mark.parametrize("degree", ["--trust-remote-code", "2 --model x", True, 0, -1, 10**9, 2.5])
def test_degrees_that_are_no_count_make_no_command_line(degree: Any) -> None:
    with pytest.raises(LaunchError, match="refused"):
        serve_command(EngineStart("vllm", "m", "bf16", "bf16", tensor_parallel=degree), 8300)
    if degree != 2.5:
        with pytest.raises(LaunchError, match="refused"):
            serve_command(EngineStart("vllm", "m", "bf16", "bf16", max_sequences=degree), 8300)
