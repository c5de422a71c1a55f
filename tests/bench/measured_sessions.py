"""Turns of sessions on one engine, predicted and measured: ``python -m tests.bench.measured_sessions``.

The turns are replayed as they were recorded: lengths, when each session's first turn was sent, and how long after the end of a
turn the next was. What of each prompt is found in the cache, and all times, are predicted. The runs are in no fit.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT, read_benchmark_files
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors, measurement
from service.corrections.snapshot import correction_set, in_force
from solver.corrections.applied import configuration_correction
from solver.deployment.configuration import Configuration
from solver.engine.replayable import SessionTurns
from solver.engine.simulate import simulate_sessions
from solver.prediction.estimate import without_probes

SESSIONS = DEFAULT_ROOT / "sessions"
MS_PER_S = 1e3


def recorded_turns(run: Mapping[str, Any], block: int) -> tuple[SessionTurns, np.ndarray, np.ndarray, np.ndarray]:
    """Turns with prompts and replies, those of a session in a row, and when first turns were sent.

    Recorded are all first turns, then all second ones, of the same sessions in the same order.
    """
    sessions, turns, requests = run["sessions"], run["turns"], run["requests"]
    order = np.arange(sessions * turns).reshape(turns, sessions).T.ravel()
    prompts, outputs = (np.array(requests[name])[order] for name in ("prompt_tokens", "output_tokens"))
    sent_s, ended_s = np.array(requests["sent_s"])[order], np.array(requests["e2e_ms"])[order] / MS_PER_S
    ended_s = sent_s + ended_s
    number, opening = np.tile(np.arange(turns), sessions), run["system_tokens"] // block
    think_s = np.where(number > 0, sent_s - np.concatenate([[0.0], ended_s[:-1]]), 0.0)
    firsts = np.flatnonzero(number == 0)
    starts = firsts[np.argsort(sent_s[firsts], kind="stable")]
    found = SessionTurns(
        think_s=think_s,
        later=(number < turns - 1).astype(np.int64),
        aside_tokens=np.full(len(order), opening * block, dtype=np.int64),
        kept_tokens=prompts + outputs - 1,
        chain=np.repeat(np.arange(sessions), turns).astype(np.int64),
        starts=starts.astype(np.int64),
        parent=np.array([*[sessions] * sessions, -1], dtype=np.int64),
        blocks=np.array([*[0] * sessions, opening], dtype=np.int64),
        held_chains=np.zeros(0, dtype=np.int64),
        held_blocks=np.zeros(0, dtype=np.int64),
    )
    return found, prompts, outputs, sent_s[starts]


def predicted(configuration: Configuration, run: Mapping[str, Any]) -> dict[str, float]:
    """Share of prompts found, mean TTFT and TPOT in ms, before corrections."""
    schedule = configuration.schedule()
    turns, prompts, outputs, arrivals_s = recorded_turns(run, schedule.block_tokens)
    found = simulate_sessions(configuration.tables(), schedule, prompts, outputs, turns, arrivals_s=arrivals_s)
    return {
        "hits": found.found_fraction(),
        "TTFT": float(found.trace.time_to_first_token_s.mean()) * MS_PER_S,
        "TPOT": float(found.trace.time_per_output_token_s.mean()) * MS_PER_S,
    }


def configuration_of(catalog: Catalog, path: Path, cache_tokens: float) -> Configuration:
    """That of a file of ordinary runs of the same model and engine, with the cache of the run."""
    group = path.name.removesuffix(".json.gz").rsplit("_", 1)[0]
    of_group = [file for file in read_benchmark_files() if file.id == group]
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    found = measurement(catalog, priors, of_group[0], of_group[0].runs[0]).configuration
    return replace(found, kv_cache_tokens=cache_tokens)


def main() -> None:
    catalog = read_catalog()
    table = Table("run", "", "found %", "TTFT mean ms", "TPOT mean ms")
    for path in sorted(SESSIONS.glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            runs: dict[str, Any] = json.load(file)
        for name, run in runs.items():
            configuration = configuration_of(catalog, path, float(run["cache_tokens"]))
            correction = configuration_correction(correction_set(catalog.corrections[-1]), configuration)
            factors = correction.factors if correction else {}
            expected = predicted(without_probes(configuration, correction), run)
            expected["TTFT"] *= factors.get("time_to_first_token", 1.0)
            expected["TPOT"] *= factors.get("time_per_output_token", 1.0)
            hits = run["prompt_tokens_found"] / run["prompt_tokens_asked"]
            measured = {
                "hits": hits,
                "TTFT": run["results"]["ttft_ms"]["mean"],
                "TPOT": run["results"]["tpot_ms"]["mean"],
            }
            for said, values in (("measured", measured), ("predicted", expected)):
                row = (f"{100 * values['hits']:.1f}", f"{values['TTFT']:.1f}", f"{values['TPOT']:.2f}")
                table.add_row(name if said == "measured" else "", said, *row, end_section=said == "predicted")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
