"""``clusterwright plan`` and the lists, as people and as pipes see them: without a file, ids whole, no colour where none is wanted."""

import json
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
import threading
from contextlib import redirect_stdout
from fcntl import ioctl
from pathlib import Path

import pytest

from service.cli.main import main
from tests.service.command import ours_alone, run
from tests.service.test_serve import COMMAND, ROOT, environment

STATED = ("--rate", "2", "--prompt", "1200:4000", "--output", "300:900", "--ttft-p95", "1000", "--tpot-p95", "50")
FEW = ("--device", "l40s", "--device", "h100-sxm", "--provider", "verda", "--provider", "hyperstack")
NEXT = "-- next --"
LONGEST_ID = re.compile(r"aws:\S+:\S+:on_demand")


@pytest.fixture(scope="module")
def database_url(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> str:
    path = tmp_path_factory.mktemp("commands") / "seeded.sqlite"
    path.write_bytes(seeded_template.read_bytes())
    return f"sqlite:///{path}"


def on_terminal(*commands: tuple[int, dict[str, str], tuple[str, ...]], url: str) -> list[str]:
    """What the terminal is sent by each: columns, settings that hold from then on, arguments. Standard output is a terminal meanwhile, of
    this process, in which what was simulated before is known."""
    ours, theirs = pty.openpty()
    sent: list[bytes] = []
    reading = threading.Thread(target=_read_all, args=(ours, sent))
    reading.start()
    before = os.dup(1)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(theirs, "w") as terminal, redirect_stdout(terminal):
        for name, value in [*ours_alone(url).items(), ("TERM", "xterm")]:
            patch.setenv(name, value)
        for name in ("COLUMNS", "LINES"):  # would speak for every terminal
            patch.delenv(name, raising=False)
        os.dup2(theirs, 1)
        try:
            for columns, settings, arguments in commands:
                ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
                for name, value in settings.items():
                    patch.setenv(name, value)
                assert main(arguments) == 0
                terminal.write(NEXT)
                terminal.flush()
        finally:
            os.dup2(before, 1)
            os.close(before)
    reading.join()
    os.close(ours)
    return b"".join(sent).decode().split(NEXT)[:-1]


def _read_all(terminal: int, sent: list[bytes]) -> None:
    while True:
        try:
            sent.append(os.read(terminal, 65_536))
        except OSError:  # nobody holds the other end any more
            return


class TestPlan:
    def test_states_a_workload_without_a_file(self, database_url: str) -> None:
        done = run("plan", "llama-3.1-8b", *STATED, *FEW, "--json", url=database_url)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        (workload,) = answer["request"]["workloads"]
        assert workload["targets"]["ttft_ms"] == {"p95": 1000}
        assert workload["traffic"]["prompt_tokens"] == {"distribution": "lognormal", "mean": 1200, "p95": 4000}
        assert answer["request"]["limits"]["providers"] == ["verda", "hyperstack"]
        assert {line["device"] for line in answer["plan"]} <= {"l40s", "h100-sxm"}

    def test_shows_what_to_rent_with_the_whole_offer(self, database_url: str) -> None:
        done = run("plan", "llama-3.1-8b", *STATED, *FEW, url=database_url)
        asked = "for llama-3.1-8b, prompts of 1,200 tokens (p95 4,000), replies of 300 (p95 900), 2 requests/s, TTFT p95 ≤ 1000 ms"
        assert asked in done.stdout
        assert "price of " in done.stdout
        offer = re.search(r"price of (\S+): \$", done.stdout)
        assert offer is not None
        assert run("offers", offer[1], url=database_url).returncode == 0
        assert "\x1b[" not in done.stdout

    @pytest.mark.parametrize("preset", ["chat", "rag", "code", "reasoning", "batch"])
    def test_presets_state_everything_and_options_replace_parts(
        self, preset: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["plan", "llama-3.1-8b", "--preset", preset, "--rate", "3", "--show-request"]) == 0
        body = json.loads(capsys.readouterr().out)
        (workload,) = body["workloads"]
        assert workload["llm"] == "llama-3.1-8b"
        assert workload["traffic"]["requests_per_s"] == 3
        assert workload["targets"]

    def test_what_is_missing_is_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plan", "llama-3.1-8b", "--rate", "3"]) == 2
        said = capsys.readouterr().err
        assert all(name in said for name in ("--prompt", "--output", "--ttft-p95", "--preset"))
        assert "--rate" not in said

    def test_lengths_that_cannot_be_read_are_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plan", "--preset", "chat", "--prompt", "long"]) == 2
        assert "--prompt 'long'" in capsys.readouterr().err


class TestLists:
    def test_every_id_is_whole_on_any_terminal(self, database_url: str) -> None:
        ids = {o["id"] for o in json.loads(run("offers", "--provider", "azure", "--json", url=database_url).stdout)}
        asked = ("offers", "--provider", "azure")
        wide = on_terminal(*((columns, {}, asked) for columns in (60, 80, 200)), url=database_url)
        for shown in wide:
            assert {word for word in re.split(r"[\s│]+", shown) if word.startswith("azure:")} == ids
        assert len(set(wide)) == 3

    def test_a_pipe_gets_plain_columns(self, database_url: str) -> None:
        lines = run("offers", "--provider", "aws", "--device", "H200", url=database_url).stdout.splitlines()
        assert lines[0].split("\t")[:2] == ["id", "USD/h"]
        assert len(lines) > 10
        assert all(len(line.split("\t")) == len(lines[0].split("\t")) for line in lines)
        assert all(LONGEST_ID.fullmatch(line.split("\t")[0]) for line in lines[1:] if "on_demand" in line)

    def test_no_color_is_honoured(self, database_url: str) -> None:
        colour = re.compile(r"\x1b\[[0-9;]*3[0-7]")
        asked = ("plan", "llama-3.1-8b", *STATED, *FEW)
        coloured, plain = on_terminal((120, {}, asked), (120, {"NO_COLOR": "1"}, asked), url=database_url)
        assert colour.search(coloured)
        assert "$" in plain
        assert not colour.search(plain)

    def test_the_readmes_own_command_finds_something(self, database_url: str) -> None:
        assert "mi300x" in run("devices", "--vendor", "amd", url=database_url).stdout


class TestOwnThings:
    """One database of its own: what is added and withdrawn must not change what other tests see."""

    @pytest.fixture(scope="class")
    def own_url(self, tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> str:
        path = tmp_path_factory.mktemp("own") / "seeded.sqlite"
        path.write_bytes(seeded_template.read_bytes())
        return f"sqlite:///{path}"

    def test_a_model_is_added_from_its_config_and_planned(self, own_url: str, tmp_path: Path) -> None:
        folder = tmp_path / "My Model"
        folder.mkdir()
        config = ROOT / "tests" / "fixtures" / "llm-configs" / "CohereLabs--c4ai-command-r-v01.json"
        (folder / "config.json").write_bytes(config.read_bytes())
        done = run("llms", "add", str(folder / "config.json"), url=own_url)
        assert done.returncode == 0, done.stderr
        assert "llm my-model is in the catalog: 35 B parameters, context of 131,072 tokens" in done.stdout
        again = run("llms", "add", str(folder / "config.json"), "--checkpoint", "ours/tuned", url=own_url)
        assert (again.returncode, "choose another id" in again.stderr) == (2, True)
        named = ("--as", "tuned", "--checkpoint", "ours/tuned")
        assert run("llms", "add", str(folder / "config.json"), *named, url=own_url).returncode == 0
        assert json.loads(run("llms", "tuned", url=own_url).stdout)["hugging_face_id"] == "ours/tuned"
        assert json.loads(run("llms", "my-model", url=own_url).stdout)["origin"] == "user"

    def test_a_withdrawn_offer_has_no_price_any_more(self, own_url: str) -> None:
        offer = "lambda:gpu_1x_gh200:all:on_demand"
        assert json.loads(run("offers", offer, url=own_url).stdout)["price"]["usd_per_hour"] is not None
        assert run("offers", "withdraw", offer, url=own_url).returncode == 0
        price = json.loads(run("offers", offer, url=own_url).stdout)["price"]
        assert price is None or price["usd_per_hour"] is None

    def test_what_to_add_must_be_said(self, own_url: str) -> None:
        done = run("offers", "add", url=own_url)
        assert done.returncode == 2
        assert "--provider, --node or --device, --usd-per-hour" in done.stderr

    def test_an_own_contract_needs_no_file(self, own_url: str) -> None:
        """A machine of one's own, then its new price, then the contract with a provider the catalog knows."""
        done = run("offers", "add", "--provider", "ours", "--device", "h100", "--usd-per-hour", "18.5", url=own_url)
        assert "offer ours:hgx-h100-8:here:on_demand is in the catalog" in done.stdout, done.stderr
        done = run("offers", "add", "--provider", "ours", "--node", "hgx-h100-8", "--usd-per-hour", "17", url=own_url)
        assert "ours:hgx-h100-8:here:on_demand costs $17.00 an hour (it was $18.50)" in done.stdout, done.stderr
        bounded = ("--provider", "ours", "--node", "hgx-h100-8", "--usd-per-hour", "17", "--max-nodes", "2")
        done = run("offers", "add", *bounded, url=own_url)
        assert (done.returncode, "leave --max-nodes out" in done.stderr) == (2, True), (
            "what is not taken is not acknowledged"
        )
        contract = ("--provider", "AWS", "--region", "us-east-1", "--device", "h100-sxm", "--commitment", "reserved_1y")
        done = run("offers", "add", *contract, "--usd-per-hour", "30", "--json", url=own_url)
        assert json.loads(done.stdout)["id"] == "aws:p5.48xlarge:us-east-1:reserved_1y"
        terms = ("--provider", "aws", "--region", "us-east-1", "--commitment", "reserved_1y")
        text = run("plan", "llama-3.1-8b", *STATED, *terms, url=own_url).stdout
        assert "price of aws:p5.48xlarge:us-east-1:reserved_1y: $30.00 a node-hour" in text, (
            "a contract is rented, not owned"
        )
        done = run("plan", "llama-3.1-8b", *STATED, "--provider", "ours", "--json", url=own_url)
        answer = json.loads(done.stdout)
        assert answer["totals"]["usd_per_hour"] == f"{17 * answer['plan'][0]['nodes']}.000000"
        assert run("offers", "withdraw", "ours:hgx-h100-8:here:on_demand", url=own_url).returncode == 0

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (
                ("--provider", "ours", "--device", "l4", "--devices", "3", "--usd-per-hour", "1"),
                "--devices may be 1, 2",
            ),
            (("--provider", "aws", "--device", "h100", "--usd-per-hour", "1"), "state --region"),
            (("--provider", "ours", "--node", "hgx-h100-8", "--usd-per-hour", "twelve"), "a number of dollars"),
            (("--provider", "ours", "--node", "hgx-h100-8", "--usd-per-hour", "0"), "--max-nodes"),
            (("--provider", "ours", "--node", "hgx-h10", "--usd-per-hour", "1"), "hgx-h100-8"),
        ],
    )
    def test_an_offer_that_is_not_clear_is_asked_back(self, own_url: str, options: tuple[str, ...], said: str) -> None:
        done = run("offers", "add", *options, url=own_url)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr

    def test_a_price_list_of_which_nothing_was_taken_is_no_success(self, own_url: str, tmp_path: Path) -> None:
        prices = tmp_path / "prices.csv"
        prices.write_text("provider,instance_name,location,price,spot\naws,no-such-machine,us-east-1,1.5,False\n")
        done = run(
            "prices", "import", str(prices), "--valid-from", "2026-11-01T00:00:00Z", "--source", "test", url=own_url
        )
        assert done.returncode == 1, done.stdout + done.stderr
        assert "offers add" in done.stderr

    def test_a_reader_who_has_seen_enough_is_no_error(self, database_url: str) -> None:
        shell = f"{shlex.join(COMMAND)} offers | head -1"
        done = subprocess.run(
            ["bash", "-c", shell], env=environment(database_url), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout.startswith("id\t")
        assert "Traceback" not in done.stderr

    def test_a_plan_has_near_ones_and_a_quote(self, own_url: str) -> None:
        answer = json.loads(run("plan", "llama-3.1-8b", *STATED, *FEW, "--json", url=own_url).stdout)
        assert run("near-optimal", answer["id"], url=own_url).returncode == 0
        done = run("quote", answer["id"], url=own_url)
        assert done.returncode == 0, done.stderr
        assert f"of {answer['plan'][0]['provider']} in {answer['plan'][0]['region']}" in done.stdout
        assert "confirm: " in done.stdout
        assert "its price may rise to $" in done.stdout


def test_prices_of_tokens_are_listed_whether_or_not_they_say_since_when(database_url: str) -> None:
    done = run("api-prices", url=database_url)
    assert done.returncode == 0, done.stderr
    assert "USD/M in" in done.stdout
    assert len(done.stdout.splitlines()) > 20


def test_engines_are_named_by_options(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plan", "llama-3.1-8b", "--preset", "chat", "--rate", "3", "--show-request"]
    assert main([*line, "--engine", "vllm", "--engine", "sglang"]) == 0
    assert json.loads(capsys.readouterr().out)["workloads"][0]["engines"] == ["vllm", "sglang"]
    assert main(line) == 0
    assert "engines" not in json.loads(capsys.readouterr().out)["workloads"][0]


def test_how_busy_and_how_drafted_are_options(database_url: str) -> None:
    stated = ("--busy-at-most", "95", "--draft", "ngram:4:0.6:0", "--show-request")
    (workload,) = json.loads(run("plan", "llama-3.1-8b", *STATED, *FEW, *stated, url=database_url).stdout)["workloads"]
    assert workload["utilisation_limit_fraction"] == 0.95
    assert (workload["drafting"]["draft_tokens"], workload["drafting"]["acceptance_fraction"]) == (4, 0.6)


def test_host_memory_for_caches_is_an_option(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    chats = ("--turns", "5", "--user", "120", "--think", "30", "--output", "200", "--rate", "3")
    line = ["plan", "llama-3.1-8b", *chats, "--ttft-p95", "1000", "--show-request", "--host-cache", "32"]
    assert main([*line, "--host-cache", "100"]) == 0
    assert json.loads(capsys.readouterr().out)["workloads"][0]["host_cache_gib"] == [32.0, 100.0]
    estimated = ["estimate", "llama-3.1-8b", "--device", "h100-sxm", *chats, "--host-cache", "32"]
    assert "one size is estimated" in run(*estimated, "--host-cache", "64", url=database_url).stderr
    assert run(*estimated, url=database_url).stdout


def test_a_plan_without_a_target_says_that_any_latency_will_do(database_url: str, tmp_path: Path) -> None:
    body = json.loads(run("plan", "llama-3.1-8b", *STATED, *FEW, "--show-request", url=database_url).stdout)
    body["workloads"][0]["targets"] = {}
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps(body))
    assert "no target was stated for workload" in run("recommend", str(asked), url=database_url).stdout


def test_commands_of_any_folder_mean_the_database_at_home(seeded_template: Path, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, elsewhere):
        folder.mkdir()
    (home / "clusterwright.sqlite").write_bytes(seeded_template.read_bytes())

    def at(where: Path) -> "subprocess.CompletedProcess[str]":
        settings = environment("") | {"CLUSTERWRIGHT_HOME": str(where)}
        settings.pop("CLUSTERWRIGHT_DATABASE_URL")
        return subprocess.run(
            [*COMMAND, "devices", "h100-sxm"], env=settings, cwd=elsewhere, capture_output=True, text=True, check=False
        )

    assert at(home).returncode == 0
    assert list(elsewhere.iterdir()) == []
    wrong = at(tmp_path / "none")
    assert (wrong.returncode, "there is no folder" in wrong.stderr) == (2, True)


def test_a_plan_of_sessions_says_what_it_serves(database_url: str) -> None:
    turns = ("--turns", "4", "--user", "150", "--think", "30", "--output", "200")
    stated = ("--rate", "2", *turns, "--ttft-p95", "1500", "--tpot-p95", "60")
    done = run("plan", "llama-3.1-8b", *stated, *FEW, url=database_url)
    assert done.returncode == 0, done.stderr
    assert "sessions of 4 turns, each adding 150 tokens, routed sticky" in " ".join(done.stdout.split())
