"""One loop composes a step, launches it, and only then hands on the one before: what first tokens wait for."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import read_catalog
from solver.corrections.evidence import predicted
from solver.deployment.configuration import front_end
from solver.engine.in_line import launches_in_line
from solver.engine.simulate import Schedule, simulate
from solver.engine.steady import operating_points, step_grid
from solver.layout import Layout
from solver.lengths import uniform_lengths
from solver.step import terms
from solver.step.tables import StepTables
from solver.workload import EngineSettings, Traffic
from tests.bench.launching import FILE, as_launched, constants_of, loads
from tests.llm_shapes import shape
from tests.solver.samples import configuration

LAUNCH_S, WORK_S, REPLIES_S = 0.1, 0.02, 0.001
ROOT = Path(__file__).resolve().parents[3]


def tables(launch_s: float = LAUNCH_S) -> StepTables:
    """Steps with prompts that the device works on for 20 ms, launched in so many; steps of replies of 1 ms."""
    tokens = np.ones(201)
    return StepTables(
        decode_s=REPLIES_S * tokens, mixed_s=max(launch_s, WORK_S) * tokens, head_s=0.0 * tokens, sequence_s=0.0, context=(), pairs=(),
        decode_bytes=tokens, mixed_bytes=tokens, flops_per_token=1.0, head_flops=1.0, head_bytes=tokens, lanes=1,
        sustained_flop_per_s=1e12, peak_flop_per_s=1e12, peak_bytes_per_s=1e12, devices_per_replica=1,
        launched_s=launch_s * tokens, outlasting_s=(launch_s - WORK_S) * tokens,
    )  # fmt: skip


def first_tokens_s(
    in_line: bool, launch_s: float = LAUNCH_S, arrivals_s: tuple[float, ...] = (0.0,) * 4
) -> list[float]:
    """Of prompts of which a step has room for one."""
    schedule = Schedule(110, 8, 1e6, lag_fraction=1.0, launches_in_line=in_line)
    trace = simulate(
        tables(launch_s), schedule, [100] * len(arrivals_s), [200] * len(arrivals_s), arrivals_s=list(arrivals_s)
    )
    found: list[float] = trace.time_to_first_token_s.tolist()
    return found


class TestFirstTokens:
    def test_wait_until_the_step_after_their_own_is_launched(self) -> None:
        """The last has none behind it."""
        assert first_tokens_s(True) == pytest.approx([0.2, 0.3, 0.4, 0.4])

    def test_do_not_where_other_processes_launch(self) -> None:
        assert first_tokens_s(False) == pytest.approx([0.1, 0.2, 0.3, 0.4])

    def test_do_not_where_the_device_works_longer_than_launching_takes(self) -> None:
        """Launching a step then ends while the one before runs."""
        for in_line in (True, False):
            assert first_tokens_s(in_line, 0.005) == pytest.approx([0.02, 0.04, 0.06, 0.08], abs=2e-3)

    def test_who_comes_while_a_step_is_launched_joins_the_next(self) -> None:
        """Else the one after: it would have been composed a step early."""
        alone, coming = 0.0, 0.09
        assert first_tokens_s(True, arrivals_s=(alone, coming)) == pytest.approx([0.2, 0.2 - coming], abs=1e-6)
        assert first_tokens_s(False, arrivals_s=(alone, coming))[1] > 0.2 - coming


def test_python_and_the_compiled_kernel_say_the_same() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from tests.solver.engine.test_launching import first_tokens_s\n"
        "print([first_tokens_s(True), first_tokens_s(True, 0.005), first_tokens_s(True, 0.1, (0.0, 0.05, 0.13, 0.5))])"
    )
    plain = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert json.loads(plain) == [
        first_tokens_s(True), first_tokens_s(True, 0.005), first_tokens_s(True, 0.1, (0.0, 0.05, 0.13, 0.5)),
    ]  # fmt: skip


class TestWhoLaunchesInLine:
    @pytest.mark.parametrize(
        ("layout", "version", "expected"),
        [
            (Layout(), "0.24.0", True),
            (Layout(data_parallel=2, expert_parallel=2), "0.24.0", True),
            (Layout(tensor_parallel=2), "0.24.0", False),
            (Layout(pipeline_parallel=2), "0.24.0", False),
            (Layout(), "0.12.0", False),
        ],
    )
    def test_vllm_with_one_device_a_copy(self, layout: Layout, version: str, expected: bool) -> None:
        assert launches_in_line("vllm", version, layout) is expected

    def test_a_schedule_says_so(self) -> None:
        model = shape("qwen3-30b-a3b")
        one, two = (configuration(model, "h200-sxm", layout=Layout(tensor_parallel=n)).schedule() for n in (1, 2))
        assert (one.launches_in_line, two.launches_in_line) == (True, False)


class TestBetweenCapturedPieces:
    @pytest.mark.parametrize(("model", "kind"), [("deepseek-v2-lite", "mla"), ("nemotron-3-nano-30b-a3b", "linear")])
    def test_prompts_and_replies_are_launched_one_after_the_other(
        self, model: str, kind: Literal["mla", "linear"]
    ) -> None:
        told = EngineSettings("vllm", version="0.24.0", max_captured_tokens=4096)
        found = configuration(shape(model), "h200-sxm", engine=told).tables()
        layers = shape(model).layers_of(kind)
        assert 0.4e-3 < found.launched_s[64] / layers < 1.6e-3
        assert 0.1e-3 < found.launched_beside_s / layers < 1.1e-3
        assert found.mixed_s[64] >= found.launched_s[64]
        assert found.captured_prompt_tokens == 4096

    def test_other_models_wait_for_nothing_there(self) -> None:
        told = EngineSettings("vllm", version="0.24.0", max_captured_tokens=4096)
        found = configuration(shape("qwen3-30b-a3b"), "h200-sxm", engine=told).tables()
        assert found.launched_s[4096] == found.launched_beside_s == 0.0
        assert found.launched_s[4097] > 0.01


class TestAsMeasured:
    def test_an_open_load_of_a_mixture_as_it_was_launched(self) -> None:
        """12 requests a second, first tokens after 268 ms, a token every 26.1: what launching took is of that load, all else said."""
        catalog = read_catalog()
        server = next(one for name, one in json.loads(FILE.read_text())["servers"].items() if "Qwen3" in name)
        name, load, one = next(load for load in loads(catalog, server) if load[0].endswith("o12_y"))
        said = predicted(one, as_launched(one, constants_of(catalog, one), load["steps"]), 2)
        assert name in json.loads((DEFAULT_ROOT / "kept_back" / server["kept_back"]).read_text())["runs"]
        assert said["time_to_first_token"] == pytest.approx(one.measured["time_to_first_token"], rel=0.15)
        assert said["time_per_output_token"] == pytest.approx(one.measured["time_per_output_token"], rel=0.1)


def test_the_closed_form_says_what_the_simulation_says() -> None:
    found = configuration(shape("deepseek-v2-lite"), "h200-sxm", engine=EngineSettings("vllm", version="0.24.0"))
    traffic, clients = Traffic(uniform_lengths(819, 1024), uniform_lengths(200, 256)), 16
    one = np.ones((1, 1))
    assert float(np.asarray(terms.eager_floor_s(found.shape, found.rates()))) > 0.02
    said = {}
    for in_line in (True, False):
        grid = step_grid(found.shape, found.rates(), one, one, found.profile.graphs, None, np.array([[in_line]]))
        points = operating_points(
            grid, traffic, front_end(found.constants, found.shape), in_flight=np.array([float(clients)]), kv_cache_tokens=1e7 * one,
            max_batched_tokens=8192.0 * one, max_sequences=512.0,
        )  # fmt: skip
        schedule = replace(found.schedule(), launches_in_line=in_line)
        rng = np.random.default_rng(3)
        lengths = (rng.integers(low, high + 1, 640) for low, high in ((819, 1024), (200, 256)))
        trace = simulate(found.tables(), schedule, *lengths, concurrency=clients)
        settled = float(trace.time_to_first_token_s[2 * clients :].mean())
        said[in_line] = float(points.time_to_first_token_s[0, 0])
        assert said[in_line] == pytest.approx(settled, rel=0.25), in_line
    assert said[True] > said[False]
