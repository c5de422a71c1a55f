"""``clusterwright estimate``: a deployment stated in options, without a file."""

import json
from pathlib import Path

import pytest

from service.figures import readable
from tests.service.command import run

STATED = ("llama-3.1-8b", "--device", "H100", "--prompt", "1200:4000", "--output", "300:900")


@pytest.fixture(scope="module")
def database_url(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> str:
    path = tmp_path_factory.mktemp("estimates") / "seeded.sqlite"
    path.write_bytes(seeded_template.read_bytes())
    return f"sqlite:///{path}"


def test_options_say_what_a_file_would(database_url: str, tmp_path: Path) -> None:
    options = ("--tensor-parallel", "2", "--weights", "fp8", "--concurrency", "16")
    stated = run("estimate", *STATED, *options, "--json", url=database_url)
    assert stated.returncode == 0, stated.stderr
    body = {
        "llm": "llama-3.1-8b", "device": "h100-sxm", "layout": {"tensor_parallel": 2}, "precision": {"weights": "fp8"},
        "traffic": {
            "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
            "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
        },
        "load": {"kind": "closed", "concurrency": 16},
    }  # fmt: skip
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"estimates": [body]}), encoding="utf-8")
    filed = run("estimate", str(file), "--json", url=database_url)
    assert json.loads(filed.stdout) == json.loads(stated.stdout)


def test_people_see_latencies_with_their_intervals(database_url: str) -> None:
    answer = json.loads(run("estimate", *STATED, "--rate", "3", "--json", url=database_url).stdout)
    (one,) = answer["estimates"]
    shown = run("estimate", *STATED, "--rate", "3", url=database_url)
    assert shown.returncode == 0, shown.stderr
    for name, field in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("E2E", "e2e_ms")):
        (line,) = [row for row in shown.stdout.splitlines() if row.strip("│ ").startswith(name)]
        for statistic in ("mean", "p95"):
            assert f" {readable(one[field][statistic]['expected'])} (" in line
    assert f"prediction: {one['basis']}" in shown.stdout


def test_cautions_are_shown(database_url: str) -> None:
    """A load whose queue would stay: what is completed then, and the seats that mend it."""
    mixture = (
        "estimate", "qwen3-30b-a3b", "--device", "h100-sxm", "--weights", "fp8", "--prompt", "30-70", "--output", "200-400",
        "--rate", "40",
    )  # fmt: skip
    (found,) = json.loads(run(*mixture, "--json", url=database_url).stdout)["estimates"]
    assert found["lasting_queue"] is not None
    shown = run(*mixture, url=database_url).stdout
    assert [line for line in shown.splitlines() if line.startswith("mind: ")] == [
        f"mind: {one}" for one in found["cautions"]
    ]


def test_what_cannot_run_is_said_and_is_no_success(database_url: str) -> None:
    none = run("estimate", "llama-3.1-70b", *STATED[1:], "--rate", "1", url=database_url)
    assert none.returncode == 1
    assert "does not fit" in none.stdout


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (("--prompt", "1200"), "--output"),
        (("--prompt", "1200", "--output", "300"), "--rate or --concurrency"),
        (
            ("--prompt", "1200", "--output", "300", "--rate", "1", "--concurrency", "2"),
            "either --rate or --concurrency",
        ),
        (("--prompt", "many", "--output", "300", "--rate", "1"), "--prompt 'many'"),
    ],
)
def test_what_is_missing_is_named(database_url: str, options: tuple[str, ...], missing: str) -> None:
    refused = run("estimate", "llama-3.1-8b", "--device", "h100-sxm", *options, url=database_url)
    assert refused.returncode == 2
    assert missing in refused.stderr
