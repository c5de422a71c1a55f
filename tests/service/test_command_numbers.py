"""Numbers, texts and files that no request can hold, on the command line: refused as bad usage, which says what would be right."""

from pathlib import Path

import pytest

from tests.service.command import run

DEPLOYMENT = ("estimate", "llama-3.1-8b", "--device", "h100-sxm", "--prompt", "200", "--output", "50", "--rate", "1")
SESSIONS = ("--turns", "3", "--user", "100", "--think", "5")
DEPLOYED = ("estimate", "llama-3.1-8b", "--device", "h100-sxm", "--output", "50", "--rate", "1", *SESSIONS)
PLAN = (
    "plan",
    "llama-3.1-8b",
    "--prompt",
    "200",
    "--output",
    "50",
    "--rate",
    "1",
    "--ttft-p95",
    "5000",
    "--show-request",
)
PLANNED = ("plan", "llama-3.1-8b", "--output", "50", "--rate", "1", "--ttft-p95", "5000", "--show-request", *SESSIONS)
BLOCKS = str(Path(__file__).parents[1] / "fixtures" / "traces" / "blocks.jsonl")
NO_NUMBERS = ("nan", "inf", "-inf", "1e400", "9" * 400, "many", "")
OPTIONS = [
    *((DEPLOYMENT, option) for option in ("--rate", "--adapter-zipf", "--token-ids")),
    *((DEPLOYED, option) for option in ("--think", "--host-cache", "--disk-cache", "--disk-rate")),
    *((PLAN, option) for option in (
        "--rate", "--ttft-p95", "--ttfat-p95", "--confidence", "--busy-at-most", "--time-limit", "--adapter-zipf",
    )),
    *((PLANNED, option) for option in ("--think", "--host-cache", "--disk-cache", "--disk-rate")),
    (("price-curve", "rec_0", "ttft"), "VALUE"),
    (("tco", "rec_0"), "--growth"),
    (("train", "llama-3.1-8b", "--tokens", "1b"), "--days"),
]  # fmt: skip
"""What takes a number, of a command that lacks nothing else."""


@pytest.fixture(scope="module")
def database_url(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> str:
    path = tmp_path_factory.mktemp("numbers") / "seeded.sqlite"
    path.write_bytes(seeded_template.read_bytes())
    return f"sqlite:///{path}"


@pytest.mark.parametrize(("command", "option"), OPTIONS, ids=lambda part: part if isinstance(part, str) else part[0])
@pytest.mark.parametrize("text", NO_NUMBERS, ids=lambda text: text[:6])
def test_what_is_no_number_is_named(database_url: str, command: tuple[str, ...], option: str, text: str) -> None:
    given = (text,) if option == "VALUE" else (f"{option}={text}",)
    refused = run(*command, *given, url=database_url)
    assert refused.returncode == 2
    assert option.lstrip("-") in refused.stderr or text.startswith("-")
    assert "finite number" in refused.stderr or text.startswith("-")


@pytest.mark.parametrize("option", ["--prompt", "--output", "--thinking"])
@pytest.mark.parametrize(
    "text", ["nan", "9" * 400, "1:nan", "9k:inf", "-1", "\u0661", "1:2:3"], ids=lambda text: ascii(text)[:8]
)
def test_lengths_are_counts(database_url: str, option: str, text: str) -> None:
    refused = run(*DEPLOYMENT, f"{option}={text}", url=database_url)
    assert refused.returncode == 2
    assert "mean and 95th percentile" in refused.stderr


@pytest.mark.parametrize("draft", ["ngram:4:nan:0", "ngram:4:0.5:inf", "ngram:x:0.5:0", "ngram", ""])
def test_drafting_is_four_parts(database_url: str, draft: str) -> None:
    refused = run(*PLAN, f"--draft={draft or ':'}", url=database_url)
    assert refused.returncode == 2
    assert "--draft" in refused.stderr


def test_sizes_of_caches_of_traces(database_url: str) -> None:
    for text in ("nan", "inf", "0", "-1"):
        refused = run(*PLAN[:2], "--ttft-p95", "9", "--trace", BLOCKS, f"--cache-gib={text}", url=database_url)
        assert refused.returncode == 2
        assert "--cache-gib" in refused.stderr


@pytest.mark.parametrize("command", ["estimate", "recommend", "fleet"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"estimates": [{"load": {"requests_per_s": NaN}}]}', "state a finite number"),
        (b'{"workloads": [{"llm": "\\ud800"}]}', "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b"\xff\xfe{", "is not JSON"),
        (b"", "is not JSON"),
    ],
    ids=["not a number", "half a character", "nested", "binary", "nothing"],
)
def test_files_that_no_request_can_be(
    database_url: str, tmp_path: Path, command: str, content: bytes, says: str
) -> None:
    file = tmp_path / "request.json"
    file.write_bytes(content)
    refused = run(command, str(file), url=database_url)
    assert refused.returncode == 2
    assert says in refused.stderr


@pytest.mark.parametrize(
    "command",
    [("llms", "\udcff"), ("devices", "\n"), ("offers", "--region", "\udcff"), ("estimate", "\udcff", *DEPLOYMENT[2:])],
)
def test_names_that_no_address_holds(database_url: str, command: tuple[str, ...]) -> None:
    """Bytes that are no UTF-8 reach a command as halves of characters."""
    refused = run(*command, url=database_url)
    assert refused.returncode == 2
    assert "is no address" in refused.stderr or "not UTF-8" in refused.stderr


@pytest.mark.parametrize("target", ["ttft.p97=5", "ttft=5", "p95=5", "ttft.p95=nan", "ttft.p95=", "mood.p95=5", ""])
def test_targets_have_a_metric_a_statistic_and_a_limit(database_url: str, target: str) -> None:
    refused = run(*PLAN, f"--target={target}", url=database_url)
    assert refused.returncode == 2
    assert "--target" in refused.stderr


@pytest.mark.parametrize("shares", ["nan,0.5", "half", ""])
def test_shares_of_adapters_are_numbers(database_url: str, shares: str) -> None:
    refused = run(*PLAN, "--adapters", "2", f"--adapter-shares={shares}", url=database_url)
    assert refused.returncode == 2
    assert "--adapter-shares" in refused.stderr
