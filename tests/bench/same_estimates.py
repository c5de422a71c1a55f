"""Are estimates the same as those of an older checkout? ``python -m tests.bench.same_estimates --against FOLDER``.

For changes that must not change an answer: deployments of every kind the service predicts (open and closed loads with and without an
end, all engines, formats, layouts, nodes, sessions, adapters, images, hidden tokens, drafting, pools, cases that are refused), drawn
from a seed, beside those of ``tests.bench.estimates``, are answered by both checkouts as one call each and every field is compared,
the cases of a call in the order drawn. ``--store FILE`` keeps answers, ``--with FILE`` compares with what was kept.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Body = dict[str, Any]
SEED = 41
CALL = 500
LLMS = (
    "llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-20b", "gemma-3-27b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3",
    "phi-4-14b", "llama-3.1-405b", "gpt-oss-120b", "qwen3-0.6b",
)  # fmt: skip
DEVICES = (
    "h100-sxm", "h200-sxm", "b200-sxm", "l40s", "a100-sxm-80", "mi300x", "l4", "rtx-4090", "h100-pcie", "b300-sxm", "tpu-v5e", "a10g",
)  # fmt: skip
ENGINES = ("vllm", "vllm", "vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp", "static")
WEIGHTS = ("bf16", "bf16", "bf16", "fp8", "int4", "mxfp4", "int8")


def lengths(draw: random.Random, low: int, high: int) -> Body:
    """A distribution whose mean lies between the two."""
    mean = round(low * (high / low) ** draw.random())
    match draw.randrange(6):
        case 0:
            return {"distribution": "fixed", "tokens": mean}
        case 1:
            return {"distribution": "uniform", "low": max(1, mean // 2), "high": mean + mean // 2}
        case 2:
            kinds = sorted({max(1, round(mean * draw.uniform(0.2, 2.5))) for _ in range(3)})
            shares = [round(1.0 / len(kinds), 6)] * (len(kinds) - 1)
            shares.append(round(1.0 - sum(shares), 6))
            bins = [{"tokens": t, "share": s} for t, s in zip(kinds, shares, strict=True)]
            return {"distribution": "histogram", "histogram": bins}
        case _:
            return {"distribution": "lognormal", "mean": mean, "p95": round(mean * draw.uniform(1.5, 4.0))}


def load(draw: random.Random) -> Body:
    if draw.random() < 0.5:
        found: Body = {"kind": "closed", "concurrency": round(2.0 ** draw.uniform(0.0, 9.0))}
    else:
        found = {"kind": "open", "requests_per_s": round(10.0 ** draw.uniform(-1.5, 1.3), 4)}
    return found | ({"requests": round(10.0 ** draw.uniform(1.0, 3.3))} if draw.random() < 0.25 else {})


def deployment(draw: random.Random) -> Body:
    """A plain case, most of whose fields may be left out."""
    layout = {"tensor_parallel": draw.choice((1, 1, 2, 4, 8))}
    if draw.random() < 0.15:
        layout["pipeline_parallel"] = draw.choice((2, 3))
    if draw.random() < 0.15:
        layout["data_parallel"] = draw.choice((2, 4))
    if draw.random() < 0.1:
        layout["expert_parallel"] = draw.choice((2, 4, 8))
    engine: Body = {"name": draw.choice(ENGINES)} if draw.random() < 0.7 else {}
    if draw.random() < 0.3:
        engine["max_batched_tokens"] = draw.choice((512, 2048, 16384))
    if draw.random() < 0.3:
        engine["max_sequences"] = draw.choice((8, 64, 256, 1024))
    if draw.random() < 0.1:
        engine["max_context_tokens"] = draw.choice((2_000, 8_192))
    if draw.random() < 0.1:
        engine |= {"version": draw.choice(("0.12.0", "0.20.1", "nightly")), "release": draw.choice(("any", "planned"))}
    traffic: Body = {"prompt_tokens": lengths(draw, 20, 8_000), "output_tokens": lengths(draw, 1, 900)}
    if draw.random() < 0.2:
        traffic["shared_prefix_fraction"] = round(draw.random(), 3)
    if draw.random() < 0.1:
        traffic["structured_fraction"] = round(draw.random(), 3)
    body: Body = {
        "llm": draw.choice(LLMS), "device": draw.choice(DEVICES), "precision": {"weights": draw.choice(WEIGHTS)},
        "engine": engine, "traffic": traffic, "load": load(draw),
    }  # fmt: skip
    if draw.random() < 0.8:
        body["layout"] = layout
    if draw.random() < 0.2:
        body["precision"]["kv_cache"] = "fp8"
    if draw.random() < 0.05:
        body["over_context"] = "refuse"
    return body


def case(draw: random.Random) -> Body:
    """A plain case, or one of the less common kinds; some are refused."""
    body = deployment(draw)
    match draw.randrange(20):
        case 0:
            del body["traffic"]["prompt_tokens"]
            body["traffic"].pop("shared_prefix_fraction", None)
            body["traffic"]["sessions"] = {
                "turns": lengths(draw, 2, 8), "user_tokens": lengths(draw, 20, 400), "think_time_s": draw.choice((0, 5, 30)),
                "system_prompt_tokens": draw.choice((0, 500)),
            }  # fmt: skip
        case 1:
            adapters = draw.choice((2, 20, 200))
            body["adapters"] = {"count": adapters, "rank": draw.choice((8, 16, 64))}
        case 2:
            body["llm"] = "gemma-3-27b"
            body["traffic"]["images"] = {"per_request": draw.choice((1, 2)), "width_px": 800, "height_px": 600}
        case 3:
            body["traffic"]["thinking_tokens"] = lengths(draw, 50, 600)
        case 4:
            body["engine"]["speculative"] = {
                "method": "ngram", "draft_tokens": draw.choice((2, 4)), "acceptance_fraction": 0.6, "draft_step_fraction": 0.02,
                "draft_cost_source": "a measured run",
            }  # fmt: skip
        case 5:
            body |= {"llm": "llama-3.1-70b", "layout": {"tensor_parallel": draw.choice((2, 4, 8))}}
            body["engine"]["speculative"] = {
                "method": "draft_model", "draft_tokens": 3, "acceptance_fraction": 0.7, "draft_llm": "llama-3.1-8b",
            }  # fmt: skip
        case 6:
            pools = draw.choice((("h100-sxm", "h100-sxm"), ("h200-sxm", "h100-sxm"), ("b200-sxm", "h200-sxm")))
            pool = [{"device": d, "layout": {"tensor_parallel": draw.choice((1, 2, 4))}, "replicas": 2} for d in pools]
            body["disaggregated"] = {"prefill": pool[0], "decode": pool[1], "kv_transfer": {"over": "node_link"}}
            del body["device"]
            body.pop("layout", None)
            body["load"] = {"kind": "open", "requests_per_s": round(draw.uniform(0.2, 4.0), 3)}
        case 7:
            body[draw.choice(("llm", "device"))] = "no-such-thing"
        case _:
            pass
    return body


def calls(seed: int, count: int, of_bench: int = 1_000) -> list[Body]:
    """Bodies of requests: those of ``tests.bench.estimates``, then cases drawn."""
    from tests.bench.estimates import asked

    draw = random.Random(f"{seed} estimates")
    drawn = [case(draw) for _ in range(count)]
    return [{"estimates": asked(of_bench)}, *({"estimates": drawn[n : n + CALL]} for n in range(0, count, CALL))]


def answered(database: str, folder: Path, seed: int, count: int, of_bench: int) -> list[dict[str, Any]]:
    """What the service of the checkout that this process imports answers over HTTP, with processor seconds of the server."""
    import httpx

    from tests.bench.planner import cpu_s
    from tests.bench.server_process import ServerProcess

    server = ServerProcess(database, folder / "log", CLUSTERWRIGHT_ESTIMATE_TIME_LIMIT_S="600")
    server.start()
    found = []
    try:
        for number, body in enumerate(calls(seed, count, of_bench)):
            before, began = cpu_s(server.pid), time.perf_counter()
            answer = httpx.post(f"{server.address}/v1/estimates", json=body, timeout=600)
            wall_s, used_s = time.perf_counter() - began, cpu_s(server.pid) - before
            assert answer.status_code == 200, answer.text[:2000]
            for asked, says in zip(body["estimates"], answer.json()["estimates"], strict=True):
                found.append({"call": number, "asked": asked, "says": says})
            found[-1] |= {"wall_s": wall_s, "s": used_s}
    finally:
        server.stop()
    return found


def in_checkout(folder: Path, options: argparse.Namespace, database: str) -> list[dict[str, Any]]:
    """The same in a process of a checkout."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, str(Path(__file__).resolve()), "--answer", file.name, "--database", database]
        command += ["--seed", str(options.seed), "--count", str(options.count)]
        command += ["--bench", str(options.bench)]
        subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, check=True)
        answers: list[dict[str, Any]] = json.loads(Path(file.name).read_text(encoding="utf-8"))
        return answers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.same_estimates", description=__doc__)
    parser.add_argument("--against", type=Path, help="an older checkout, with the same tables in its database")
    parser.add_argument("--store", type=Path, help="keep this checkout's answers")
    parser.add_argument("--with", dest="kept", type=Path, help="compare with answers kept")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=1_500, help="cases drawn, beside the bench's 1,000 (default 1500)")
    parser.add_argument("--bench", type=int, default=1_000, help="cases of tests.bench.estimates (default 1000)")
    parser.add_argument("--database", help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer is not None:
        found = answered(options.database, options.answer.parent, options.seed, options.count, options.bench)
        options.answer.write_text(json.dumps(found), encoding="utf-8")
        return 0
    from tests.bench.planner import seeded_database

    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        new = in_checkout(ROOT, options, url)
        if options.store is not None:
            options.store.write_text(json.dumps(new), encoding="utf-8")
        print(f"seed {options.seed}: {dict(Counter(one['says']['outcome'] for one in new))}")
        if options.kept is not None:
            old = json.loads(options.kept.read_text(encoding="utf-8"))
        elif options.store is None:
            old = in_checkout((options.against or ROOT).resolve(), options, url)
        else:
            old = new
    return report(old, new)


def report(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> int:
    """Print what differs, and what each call took; 1 where anything differs."""
    from tests.bench.same_answers import differences

    same = 0
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        lines = [] if before["asked"] == after["asked"] else ["not the same request"]
        lines += differences(before["says"], after["says"])
        same += not lines
        for line in lines[:6]:
            print(f"  {number}: {line}")
    for before, after in zip(old, new, strict=True):
        if "s" in after:
            print(
                f"call {after['call']}: {before['s']:.2f} → {after['s']:.2f} processor seconds of the server,"
                f" {before['wall_s']:.2f} → {after['wall_s']:.2f} s by the clock"
            )
    print(f"{same} of {len(new)} identical; load average {os.getloadavg()[0]:.1f} at the end")
    return 0 if same == len(new) else 1


if __name__ == "__main__":
    raise SystemExit(main())
