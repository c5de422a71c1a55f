"""A plan's table shows the times that its workloads have targets for, and none that there are not."""

import pytest
from rich.console import Console

from service.cli.plan_lines import Answer, plan_table
from tests.service.deployments.plans import AWS, line


def shown(workload: Answer, tpot_ms: float = 30.0, settings: Answer | None = None, width: int = 120) -> str:
    def times(ms: float) -> dict[str, dict[str, float]]:
        return {p: {"expected": ms, "low": 0.9 * ms, "high": 1.1 * ms} for p in ("mean", "p50", "p90", "p95", "p99")}

    predicted = {
        "ttft_ms": times(200.0),
        "tpot_ms": times(tpot_ms),
        "e2e_ms": times(41_000.0),
        "itl_ms": times(tpot_ms),
    }
    rate = {"expected": 1.0, "low": 1.0, "high": 1.0}
    planned = line(
        "chat",
        AWS,
        predicted=predicted | {"output_tokens_per_s": rate, "power_w": None},
        engine_settings=settings or {},
    )
    console = Console(width=width)
    with console.capture() as captured:
        console.print(plan_table([planned.model_dump(mode="json")], [workload]))
    return captured.get()


@pytest.mark.parametrize(
    "workload",
    [
        {"name": "chat", "targets": {"e2e_ms": {"p95": 60_000.0}}},
        {"name": "chat", "targets": {"e2e_ms": {}}, "traffic_classes": [{"targets": {"e2e_ms": {"p99": 60_000.0}}}]},
    ],
)
def test_whole_requests_with_a_target_are_shown(workload: Answer) -> None:
    assert "E2E 41,000 (36,900–45,100) ms" in shown(workload)


@pytest.mark.parametrize(
    "workload",
    [{"name": "chat", "targets": {"ttft_ms": {"p95": 600.0}, "e2e_ms": {}}}, {"name": "chat", "targets": None}],
)
def test_without_one_they_are_not(workload: Answer) -> None:
    assert "E2E" not in shown(workload)


def test_another_workloads_target_is_not_this_ones() -> None:
    assert "E2E" not in shown({"name": "batch", "targets": {"e2e_ms": {"p95": 60_000.0}}})


def test_replies_of_one_token_have_no_time_per_token() -> None:
    workload = {"name": "chat", "targets": {"ttft_ms": {"p95": 600.0}}}
    assert "TPOT" in shown(workload)
    assert "TPOT" not in shown(workload, tpot_ms=0.0)


@pytest.mark.parametrize("captured", [None, 4096])
@pytest.mark.parametrize("tokens", [8192, 2048, 512])
@pytest.mark.parametrize("width", [100, 120])
def test_what_the_scheduler_is_told_is_shown_and_the_table_stays_narrow(
    tokens: int, captured: int | None, width: int
) -> None:
    settings = {"max_batched_tokens": tokens, "max_sequences": 1024, "max_captured_tokens": captured}
    table = shown({"name": "chat", "targets": None}, settings=settings, width=width)
    assert max(len(row) for row in table.splitlines()) <= width
    cells = [" ".join(row.split("│")[2].split()) for row in table.splitlines() if row.count("│") > 2]
    assert f"vllm, steps ≤ {tokens:,}" in cells
    seats = cells.index(f"vllm, steps ≤ {tokens:,}") + 1
    assert " ".join(cells[seats : seats + 2]).startswith("1,024 seats" + (", graphs ≤ 4,096" if captured else ""))
    assert ("graphs" in table) == bool(captured)
