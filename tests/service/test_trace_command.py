"""`clusterwright trace describe`, and plans whose traffic is a trace's."""

import json
from pathlib import Path

import pytest

from service.cli import main

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
BLOCKS, LOG = str(FIXTURES / "blocks.jsonl"), str(FIXTURES / "log.csv")
PLAN = ["plan", "llama-3.1-8b", "--ttft-p95", "2000", "--show-request"]


def test_a_description_is_shown_with_what_a_cache_finds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "describe", BLOCKS, "--cache-tokens", "2000", "--context-tokens", "1800"]) == 0
    shown = capsys.readouterr()
    assert "5 requests, shape mooncake" in shown.out
    assert "0.417 of prompts are found by one cache of 1,536 tokens" in shown.out
    assert "1 requests are longer than 1,800 tokens, the first in line 4" in shown.err


def test_json_is_what_the_service_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "describe", LOG, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["left_out"] == [{"reason": "`Response tokens` is 0", "lines": 1, "first_line": 3}]
    assert answer["arrivals"]["requests_per_s"] == pytest.approx(2 / 28)
    assert answer["sessions"]["turns_most"] == 2
    assert answer["traffic"]["prompt_tokens"]["histogram"][0] == {"tokens": 300, "share": pytest.approx(1 / 3)}


def test_a_plan_takes_its_traffic_from_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN, "--trace", BLOCKS, "--cache-tokens", "2000", "--output", "64"]) == 0
    shown = capsys.readouterr()
    traffic = json.loads(shown.out)["workloads"][0]["traffic"]
    assert traffic["requests_per_s"] == pytest.approx(4 / 9)
    assert traffic["shared_prefix_fraction"] == pytest.approx(2048 / 4914)
    assert traffic["prompt_tokens"]["distribution"] == "histogram"
    assert traffic["output_tokens"] == {"distribution": "fixed", "tokens": 64}  # what options state comes first
    assert "taken as independent" in shown.err


def test_a_plan_takes_a_trace_as_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two chats of two turns over one system prompt of two blocks, by their hashes alone."""
    rows = [
        (0, 1100, [1, 2]), (5_000, 1120, [1, 2]), (20_000, 1700, [1, 2, 3]), (45_000, 2200, [1, 2, 4, 5]),
    ]  # fmt: skip
    file = tmp_path / "chats.jsonl"
    lines = [{"timestamp": at, "input_length": n, "output_length": 50, "hash_ids": ids} for at, n, ids in rows]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    assert main([*PLAN, "--trace", str(file), "--trace-sessions"]) == 0
    shown = capsys.readouterr()
    sessions = json.loads(shown.out)["workloads"][0]["traffic"]["sessions"]
    assert sessions["think_time_s"] == pytest.approx((15.0 + 45.0) / 2)
    assert sessions["turns"]["histogram"] == [{"tokens": 2, "share": 1.0}]
    assert (sessions["system_prompt_tokens"], sessions["system_prompts"]) == (1024, 1)
    assert "sessions by hashes of prefixes" in shown.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trace", "describe", "nowhere.jsonl"], "cannot read nowhere.jsonl"),
        (["trace", "describe", str(Path(__file__))], "line 1: states no count of"),
        (["trace", "describe", BLOCKS, "--block-tokens", "1024"], "line 1: `hash_ids` lists 3 blocks"),
        (["trace", "describe", BLOCKS, "--cache-gib", "4"], "needs the model whose cache it is"),
        (["trace", "describe", BLOCKS, "--cache-gib", "2e6"], "goes from above 0"),
        ([*PLAN, "--trace", str(FIXTURES / "lengths.jsonl")], "state --rate"),
        ([*PLAN, "--trace", str(FIXTURES / "lengths.jsonl"), "--trace-sessions"], "--trace-sessions needs arrivals"),
        ([*PLAN, "--rate", "3", "--prompt", "9", "--output", "9", "--cache-tokens", "9"], "belong to --trace"),
        ([*PLAN, "--rate", "3", "--prompt", "9"], "state --output (1 of a model that embeds)"),
        (
            ["estimate", "bert-large", "--device", "l4", "--prompt", "9", "--rate", "3"],
            "state --output (1 of a model that embeds)",
        ),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
