"""What was predicted of visits to H100s and H200s, before, beside what was measured there: ``python -m tests.bench.predicted_before``.

Of 27 to 30 November 2026: bursts, of requests and of sessions, after which a queue was said to stay or to go; budgets of tokens a step
that no run had; long prompts; models that nobody here had run; short prompts with many replies; engines told up to
how many tokens to capture; copies of attention that share experts; recurrent layers between captured pieces; experts that are drawn
evenly; weights in 8 bits with a scale a block; a model with sliding windows, and three mixtures; pipelines of two stages; servers alone on
their hosts, and servers whose steps were noted. Predictions are files of the catalog that were written before
(``catalog/benchmarks/predicted``); nothing is computed here.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT

EIGHTHS = 8
REQUESTS = "bursts/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_op.json.gz"
TURNS = "sessions/h100-sxm_vllm-0.24.0_llama-3.1-8b_bf16_tp1_o.json.gz"
RUNS = {
    "Llama 3.1 8B: budgets, long prompts": "kept_back/h100-sxm_vllm-0.24.0_llama-3.1-8b_bf16_tp1_p.json",
    "Qwen3 8B": "kept_back/h100-sxm_vllm-0.24.0_qwen3-8b_bf16_tp1_q.json",
    "Qwen3.5 27B, prompts scanned by Triton": "kept_back/h100-sxm_vllm-0.24.0_qwen3.5-27b_bf16_tp1_q.json",
    "Qwen3.5 27B, prompts scanned by FlashInfer": "kept_back/h100-sxm_vllm-0.24.0_qwen3.5-27b_bf16_tp1_s.json",
    "Gemma 4 26B-A4B": "kept_back/h100-sxm_vllm-0.24.0_gemma-4-26b-a4b_bf16_tp1_r.json",
    "Qwen3.5 35B-A3B, fp8, by Triton": "kept_back/h100-sxm_vllm-0.24.0_qwen3.5-35b-a3b_fp8_tp1_r.json",
    "Qwen3 30B-A3B, fp8, short prompts": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_t.json",
    "the same answered by four processes, predicted of one": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_four-servers_t.json",
    "Llama 3.1 8B, short prompts": "kept_back/h100-sxm_vllm-0.24.0_llama-3.1-8b_bf16_tp1_t.json",
    "Qwen3 30B-A3B, fp8, captured up to 512 tokens": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_captured-512_u.json",
    "up to 2,048": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_captured-2048_u.json",
    "up to 4,096": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_captured-4096_u.json",
    "64 seats, up to 128": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_64-seats_u.json",
    "64 seats, up to 512": "kept_back/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_64-seats-captured-512_u.json",
    "Qwen3 32B on H200, fp8, steps of 512 tokens": "kept_back/h200-sxm_vllm-0.24.0_qwen3-32b_fp8_tp1_steps-512_v.json",
    "of 2,048": "kept_back/h200-sxm_vllm-0.24.0_qwen3-32b_fp8_tp1_steps-2048_v.json",
    "of 8,192": "kept_back/h200-sxm_vllm-0.24.0_qwen3-32b_fp8_tp1_steps-8192_v.json",
    "Qwen3 30B-A3B on H200, fp8, steps of 1,024": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_steps-1024_v.json",
    "TP 2, steps of 8,192, captured up to 4,096": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp2_captured-4096_v.json",
    "Nemotron 3 Nano on H200, captured up to 4,096": "kept_back/h200-sxm_vllm-0.24.0_nemotron-3-nano-30b-a3b_bf16_tp1_captured-4096_y.json",
    "Qwen3 30B-A3B on H200, fp8, experts drawn evenly": "h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_even_z.json",
    "Nemotron 3 Nano, experts drawn evenly": "h200-sxm_vllm-0.24.0_nemotron-3-nano-30b-a3b_bf16_tp1_even_z.json",
    "DeepSeek-V2-Lite, experts drawn evenly": "h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp1_even_z.json",
    "gpt-oss 120B, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_gpt-oss-120b_mxfp4_tp1_even_z.json",
    "Gemma 3 27B, one H200": "h200-sxm_vllm-0.24.0_gemma-3-27b_bf16_tp1_zb.json",
    "Llama 4 Scout, fp8, experts drawn evenly": "h200-sxm_vllm-0.24.0_llama-4-scout_fp8_tp1_even_zb.json",
    "Qwen3-Next 80B-A3B, fp8, experts drawn evenly, by Triton": "h200-sxm_vllm-0.24.0_qwen3-next-80b-a3b_fp8_tp1_even_zb.json",
    "gpt-oss 20B, experts drawn evenly (64 and 128 clients: stalled)": "h200-sxm_vllm-0.24.0_gpt-oss-20b_mxfp4_tp1_even_zb.json",
    "GLM-4.5-Air, fp8, TP 2, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_glm-4.5-air_fp8_tp2_even_za.json",
    "Qwen3 235B-A22B, a scale a block, TP 2, drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_qwen3-235b-a22b_fp8_tp2_block_even_za.json",
    "DeepSeek-V2-Lite, copies sharing experts, drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_dp2-ep2_even_za.json",
    "Qwen3 30B-A3B, fp8, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_even_za.json",
    "the same with a scale a block": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_block_even_za.json",
    "Qwen3 32B, fp8": "kept_back/h200-sxm_vllm-0.24.0_qwen3-32b_fp8_tp1_za.json",
    "with a scale a block": "kept_back/h200-sxm_vllm-0.24.0_qwen3-32b_fp8_tp1_block_za.json",
    "Llama 3.1 70B, fp8, two stages": "kept_back/h200-sxm_vllm-0.24.0_llama-3.1-70b_fp8_pp2_zc.json",
    "Qwen3 30B-A3B, fp8, two stages, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_pp2_even_zc.json",
    "the same with TP 2": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp2_even_zc.json",
    "Llama 4 Scout, fp8, TP 2, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_llama-4-scout_fp8_tp2_even_zc.json",
    "DeepSeek-V2-Lite, TP 2, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp2_even_zc.json",
    "gpt-oss 120B, TP 2, experts drawn evenly": "kept_back/h200-sxm_vllm-0.24.0_gpt-oss-120b_mxfp4_tp2_even_zc.json",
    "Qwen3 30B-A3B, fp8, alone on its host": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_alone_even_zd.json",
    "alone on its host with TP 2": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp2_alone_even_zd.json",
    "two stages, --no-async-scheduling, said to overlap": (
        "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_pp2_no-async-scheduling_even_zd.json"
    ),
    "Qwen3 30B-A3B, fp8, as vLLM starts it, steps noted": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_noted_even_ze.json",
    "Qwen3-Next 80B-A3B, fp8, captured, steps noted": "kept_back/h200-sxm_vllm-0.24.0_qwen3-next-80b-a3b_fp8_tp1_noted_even_ze.json",
    "gpt-oss 120B, TP 2, steps noted (all but one client: stalled)": (
        "kept_back/h200-sxm_vllm-0.24.0_gpt-oss-120b_mxfp4_tp2_noted_even_ze.json"
    ),
    "Qwen3 30B-A3B, bf16, copies that share experts": "kept_back/h200-sxm_vllm-0.24.0_qwen3-30b-a3b_bf16_dp2-ep2_captured-4096_x.json",
    "DeepSeek-V2-Lite on one H200, captured up to 4,096": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp1_captured-4096_x.json",
    "DeepSeek-V2-Lite on H200, TP 2, captured up to 4,096": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_tp2_captured-4096_w.json",
    "two copies of attention that share their experts": "kept_back/h200-sxm_vllm-0.24.0_deepseek-v2-lite_bf16_dp2-ep2_captured-4096_w.json",
}
IN_FITS = {
    "q30ba3b-fp8-tp1-even": "h200-sxm/qwen3-even",
    "nemo3nano-bf16-tp1-even": "h200-sxm/nemo-even",
    "dsv2lite-bf16-tp1-even": "h200-sxm/dsv2-even",
    "gemma27b-bf16-tp1": "h200-sxm/gemma27",
    "scout-fp8-tp1-even": "h200-sxm/scout",
    "q3next-fp8-tp1-even": "h200-sxm/q3next",
    "gptoss20b-mxfp4-tp1": "h200-sxm/gptoss20",
}
"""Configurations that went into fits after they were predicted: by the group of their runs what their predictions begin with."""
OF_COPIES_AND_LATENT_ATTENTION = tuple(RUNS)[-4:]
IN_STEP = "two copies of attention that share their experts"
"""Predicted twice before they were measured: as the model was, and with the copies held in step."""
BURSTS = {
    "q512-calm": (REQUESTS, "h100-q30ba3b-fp8-tp1-open-40_o"),
    "q512-burst30": (REQUESTS, "h100-q30ba3b-fp8-tp1-burst-30-of-512_p"),
    "q229-burst30": (REQUESTS, "h100-q30ba3b-fp8-tp1-burst-30-of-229_p"),
    "l8-calm": (TURNS, "h100-l8b-bf16-tp1-open-calm_o"),
    "l8-burst": (TURNS, "h100-l8b-bf16-tp1-open-burst_o"),
}
"""By the name of its prediction: the file and the run."""
FORETOLD_FRACTION = "--gpu-memory-utilization 0.92"
"""Of the device, what caches were foretold with; a server that was given less is compared by ``tests/service/test_engine_caches.py``."""
S_PER_MS = 1e-3


def read(file: str) -> dict[str, Any]:
    path = DEFAULT_ROOT / file
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: dict[str, Any] = json.loads(text)
    return found


def predictions() -> dict[str, Any]:
    return {
        name: said
        for day in (
            "2026-11-27-o",
            "2026-11-27-p",
            "2026-11-27-q",
            "2026-11-27-r",
            "2026-11-28-t",
            "2026-11-28-u",
            "2026-11-28-v",
            "2026-11-28-w",
            "2026-11-28-x",
            "2026-11-29-y",
            "2026-11-29-z",
            "2026-11-29-za",
            "2026-11-29-zb",
            "2026-11-29-zc",
            "2026-11-29-zd",
            "2026-11-30-ze",
        )
        for name, said in read(str(Path("predicted") / f"{day}.json"))["predictions"].items()
    }


def by_eighth(run: Mapping[str, Any]) -> list[float]:
    """Mean seconds to the first token of each eighth of a run's requests, in the order they were sent."""
    order = np.argsort(run["requests"]["sent_s"], kind="stable")
    first_s = np.array(run["requests"]["ttft_ms"])[order] * S_PER_MS
    return [float(part.mean()) for part in np.array_split(first_s, EIGHTHS)]


def show_bursts(said: Mapping[str, Any]) -> None:
    table = Table("run", "", "TTFT mean of each eighth, s", "mean, s", "TPOT, ms", "found", "all answered, s")
    for name, (file, run_id) in BURSTS.items():
        run, before = read(file)[run_id], said[name]
        results, found = run["results"], before.get("found_fraction")
        eighths = by_eighth(run)
        table.add_row(
            name, "predicted", " ".join(f"{one:.2f}" for one in before["ttft_mean_s_by_eighth"]), f"{before['ttft_mean_s']:.3f}",
            f"{before['tpot_mean_ms']:.2f}", "" if found is None else f"{found:.1%}", f"{before['duration_s']:.0f}",
        )  # fmt: skip
        share = results.get("prefix_hit_fraction")
        table.add_row(
            "", "measured", " ".join(f"{one:.2f}" for one in eighths), f"{results['ttft_ms']['mean'] * S_PER_MS:.3f}",
            f"{results['tpot_ms']['mean']:.2f}", "" if share is None else f"{share:.1%}", f"{results['duration_s']:.0f}",
            end_section=True,
        )  # fmt: skip
    Console(width=150).print(table)


def show_cache(title: str, predicted: int, reported: Mapping[str, Any]) -> None:
    for start, engine in (
        ("the engine", reported["kv_cache_tokens"]),
        ("a first start with nothing compiled", reported.get("kv_cache_tokens_with_nothing_compiled")),
    ):
        if engine is not None:
            print(
                f"{title}: a cache of {predicted:,} tokens predicted, {engine:,} by {start}, {100.0 * (predicted / engine - 1.0):+.1f} %"
            )


def runs_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """The runs of a file that were predicted, by name: those of fits say which load they are of at the end."""
    if isinstance(found["runs"], dict):
        return found["runs"]
    group = found["group"]
    loads = [run["id"].removeprefix(f"{group}-").removeprefix("even-").rpartition("_")[0] for run in found["runs"]]
    named = dict(zip(loads, found["runs"], strict=True))
    return {
        name: run | {"predicted_as": f"{IN_FITS[group]}-{name}"} for name, run in named.items() if "again" not in name
    }


def show_runs(title: str, file: str, said: Mapping[str, Any]) -> None:
    """Each run of one file beside its prediction, and its cache."""
    found = read(file)
    table = Table(
        "run",
        "TTFT mean ms: predicted",
        "measured",
        "off %",
        "TPOT mean ms: predicted",
        "measured",
        "off %",
        "tokens/s: predicted",
        "measured",
        title=title,
    )
    off: dict[str, list[float]] = {"ttft_ms": [], "tpot_ms": []}
    inside: dict[str, int] = dict.fromkeys(off, 0)
    for name, run in runs_of(found).items():
        row = [name]
        foretold = said[run.get("predicted_as", name)]
        for figure, errors in off.items():
            before, measured = foretold[figure]["mean"], run["benchmark"]["results"][figure]["mean"]
            errors.append(100.0 * (before["expected"] / measured - 1.0))
            inside[figure] += before["low"] <= measured <= before["high"]
            row += [
                f"{before['expected']:.4g} ({before['low']:.4g}–{before['high']:.4g})",
                f"{measured:.4g}",
                f"{errors[-1]:+.1f}",
            ]
        rate = foretold["output_tokens_per_s"]["expected"]
        row += [f"{rate:,.0f}", f"{run['benchmark']['results']['output_tokens_per_s']:,.0f}"]
        if "memory" in foretold and FORETOLD_FRACTION in found["server_command"]:
            show_cache(title, foretold["memory"]["kv_cache_tokens"], found["engine_reported"])
        table.add_row(*row)
    Console(width=150).print(table)
    for figure, errors in off.items():
        print(f"{figure}: mean error {np.mean(np.abs(errors)):.1f} %, {inside[figure]} of {len(errors)} inside")


def main() -> None:
    said = predictions()
    show_bursts(said)
    for title, file in RUNS.items():
        show_runs(title, file, said)
    show_runs(f"{IN_STEP}, held in step", RUNS[IN_STEP], read("predicted/2026-11-28-w.json")["with_copies_in_step"])


if __name__ == "__main__":
    main()
