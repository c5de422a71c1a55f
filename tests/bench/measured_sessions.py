"""Turns of sessions on one engine, predicted and measured: ``python -m tests.bench.measured_sessions``.

The turns are replayed as they were recorded: lengths, when each client began, and how long after the end of a turn it sent the
next; of several replicas each with the turns that it got. What of each prompt is found in the cache, and all times, are predicted. Of
these runs only those over a shared prompt were used to choose a constant, ``shared_read_fraction``; ``--fit`` prints what each of them
says of it, and what each load of chats says of ``turn_overhead_fraction``, which was chosen from times inside the engine (``--stages``).
"""

import argparse
import gzip
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from types import MappingProxyType
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
from solver.step.constants import Constants

SESSIONS = DEFAULT_ROOT / "sessions"
MS_PER_S = 1e3
BYTES_PER_GIB = 2.0**30
SHARED, OVERHEAD = "shared_read_fraction", "turn_overhead_fraction"
BARS = {"TTFT": 0.12, "TPOT": 0.06}
SAME_TIME_S = 2e-3
"""Times are recorded to so much."""


def recorded_turns(run: Mapping[str, Any], block: int) -> tuple[SessionTurns, np.ndarray, np.ndarray, np.ndarray]:
    """Turns with prompts and replies, those of a client in a row, and when clients begin.

    A client sends its next turn when its last is answered and its user has thought, as long as recorded. In an open load every session
    is a client's only one, so that it begins when it began.
    """
    requests = run["requests"]
    session, sent_s = np.array(requests["session"]), np.array(requests["sent_s"])
    ended_s = sent_s + np.array(requests["e2e_ms"]) / MS_PER_S
    alone = "open" in run
    clients = by_session(session, sent_s) if alone else held_by_clients(session, sent_s, ended_s)
    order = np.concatenate(clients)
    first = np.zeros(len(order), dtype=bool)
    first[np.cumsum([0, *(len(turns) for turns in clients[:-1])])] = True
    prompts, outputs = (np.array(requests[name])[order] for name in ("prompt_tokens", "output_tokens"))
    think_s = np.where(first, 0.0, sent_s[order] - np.concatenate([[0.0], ended_s[order][:-1]]))
    sessions, opening = int(session.max()) + 1, run["system_tokens"] // block
    starts = np.flatnonzero(first)
    starts = starts[np.argsort(sent_s[order][starts], kind="stable")]
    found = SessionTurns(
        think_s=np.maximum(think_s, 0.0),
        later=(~np.append(first[1:], True)).astype(np.int64),
        aside_tokens=np.full(len(order), opening * block, dtype=np.int64),
        kept_tokens=prompts + outputs - 1,
        chain=session[order].astype(np.int64),
        starts=starts.astype(np.int64),
        parent=np.array([*[sessions] * sessions, -1], dtype=np.int64),
        blocks=np.array([*[0] * sessions, opening], dtype=np.int64),
        held_chains=np.zeros(0, dtype=np.int64),
        held_blocks=np.zeros(0, dtype=np.int64),
    )
    return found, prompts, outputs, sent_s[order][starts]


def of_replica(run: Mapping[str, Any], replica: int) -> dict[str, Any]:
    """The run as one of several replicas saw it. What a session does elsewhere is time between two of its turns here."""
    requests = run["requests"]
    here = [one == replica for one in requests["replica"]]
    return {**run, "requests": {name: list(compress(values, here)) for name, values in requests.items()}}


def by_session(session: np.ndarray, sent_s: np.ndarray) -> list[list[int]]:
    """The requests of each session, in order."""
    order = np.lexsort((sent_s, session))
    return [group.tolist() for group in np.split(order, np.flatnonzero(np.diff(session[order])) + 1)]


def held_by_clients(session: np.ndarray, sent_s: np.ndarray, ended_s: np.ndarray) -> list[list[int]]:
    """Which requests each client of a closed loop sent, in order: the one that is free and held the session, else the one
    whose last was answered latest before."""
    clients: list[list[int]] = []
    for request in np.argsort(sent_s, kind="stable"):
        free = [turns for turns in clients if ended_s[turns[-1]] <= sent_s[request] + SAME_TIME_S]
        own = [turns for turns in free if session[turns[-1]] == session[request]]
        if chosen := own or free:
            max(chosen, key=lambda turns: float(ended_s[turns[-1]])).append(int(request))
        else:
            clients.append([int(request)])
    return clients


def predicted(configuration: Configuration, run: Mapping[str, Any]) -> dict[str, float]:
    """Share of prompts found, mean TTFT and TPOT in ms, before corrections."""
    schedule = configuration.schedule()
    seen = [of_replica(run, one) for one in range(run["routing"]["replicas"])] if "routing" in run else [run]
    loads = [recorded_turns(one, schedule.block_tokens) for one in seen]
    found = [
        simulate_sessions(configuration.tables(), schedule, prompts, outputs, turns, arrivals_s=arrivals_s)
        for turns, prompts, outputs, arrivals_s in loads
    ]
    asked = [float(prompts.sum()) for _, prompts, _, _ in loads]
    return {
        "hits": float(np.average([one.found_fraction() for one in found], weights=asked)),
        "TTFT": float(np.concatenate([one.trace.time_to_first_token_s for one in found]).mean()) * MS_PER_S,
        "TPOT": float(np.concatenate([one.trace.time_per_output_token_s for one in found]).mean()) * MS_PER_S,
    }


def configuration_of(catalog: Catalog, path: Path, run: Mapping[str, Any]) -> Configuration:
    """That of a file of ordinary runs of the same model and engine, with the caches of the run, on the device, in host memory and on a
    disk, which is read at the rate measured on that host."""
    group = path.name.removesuffix(".json.gz").rsplit("_", 1)[0]
    of_group = [file for file in read_benchmark_files() if file.id == group]
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    found = measurement(catalog, priors, of_group[0], of_group[0].runs[0]).configuration
    rate = run.get("disk_read_gbytes_per_s")
    engine = replace(
        found.engine,
        host_cache_bytes=run.get("host_cache_gib", 0.0) * BYTES_PER_GIB,
        disk_cache_bytes=run.get("disk_cache_gib", 0.0) * BYTES_PER_GIB,
        disk_bytes_per_s=None if rate is None else rate * 1e9,
    )
    return replace(found, engine=engine, kv_cache_tokens=float(run["cache_tokens"]))


@dataclass(frozen=True)
class Measured:
    """A recorded run and the deployment it ran on, with the catalog's correction of it."""

    name: str
    run: Mapping[str, Any]
    configuration: Configuration
    factors: Mapping[str, float]

    def predicted(self, constants: Mapping[str, float] = MappingProxyType({})) -> dict[str, float]:
        """Corrected; with other values of constants, in the rows' units, where some are given."""
        on = self.configuration
        chosen = {name: replace(on.constants.priors[name], value=value) for name, value in constants.items()}
        if chosen:
            on = on.with_constants(Constants(on.constants.subject, {**on.constants.priors, **chosen}))
        found = predicted(on, self.run)
        found["TTFT"] *= self.factors.get("time_to_first_token", 1.0)
        found["TPOT"] *= self.factors.get("time_per_output_token", 1.0)
        return found

    def measured(self) -> dict[str, float]:
        """hits: nan where the engine was not asked what its cache held."""
        results, found = self.run["results"], self.run["prompt_tokens_found"]
        return {
            "hits": math.nan if found is None else found / self.run["prompt_tokens_asked"],
            "TTFT": results["ttft_ms"]["mean"],
            "TPOT": results["tpot_ms"]["mean"],
        }


def measured_runs() -> Iterator[Measured]:
    catalog = read_catalog()
    for path in sorted(SESSIONS.glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            runs: dict[str, Any] = json.load(file)
        for name, run in runs.items():
            configuration = configuration_of(catalog, path, run)
            correction = configuration_correction(correction_set(catalog.corrections[-1]), configuration)
            factors = correction.factors if correction else {}
            yield Measured(name, run, without_probes(configuration, correction), factors)


def fitting(measured: Measured, constant: str, figure: str) -> float:
    """The value of a constant, a fraction, with which the run's mean of a figure is predicted; 0 or 1 where none is."""
    low, high = 0.0, 1.0
    for _ in range(8):
        middle = (low + high) / 2.0
        short = measured.predicted({constant: middle})[figure] < measured.measured()[figure]
        low, high = (middle, high) if short else (low, middle)
    return (low + high) / 2.0


def show_fits() -> None:
    for one in measured_runs():
        if max(one.run["requests"]["turn"]) > 0:
            print(f"{one.name:40} {OVERHEAD} {fitting(one, OVERHEAD, 'TTFT'):.2f}")
        elif one.run.get("in_flight", 0) > 1:
            print(f"{one.name:40} {SHARED} {fitting(one, SHARED, 'TPOT'):.2f}")


def unexplained_ms(measured: Measured) -> float:
    """Of a turn with the load's median prompt: ms outside steps, as times taken inside the engine say, beside what its tokens and taking it
    in are predicted to take. A share of ``request_overhead_ms`` is that (``turn_overhead_fraction``)."""
    stages, c = measured.run["stages_ms"], measured.configuration.constants.si
    seen_s = sum(stages[name] for name in ("client", "body_to_hashed", "step_to_first_token")) / MS_PER_S
    token_s = sum(c(f"{name}_token_us") for name in ("prompt", "prefix", "answered"))
    return float(seen_s - stages["prompt_tokens"] * token_s - c("request_ingest_us")) * MS_PER_S


def show_stages() -> None:
    for one in measured_runs():
        if "stages_ms" in one.run:
            left, whole = unexplained_ms(one), one.configuration.constants.si("request_overhead_ms") * MS_PER_S
            print(f"{one.name:40} {left:4.1f} ms, {left / whole:.2f} of request_overhead_ms")


def show_runs() -> None:
    """All runs, and of how many the means are within the bars of measured sessions."""
    table = Table("run", "", "found %", "TTFT mean ms", "TPOT mean ms")
    off: dict[str, list[float]] = {name: [] for name in BARS}
    for one in measured_runs():
        measured, found = one.measured(), one.predicted()
        for name in BARS:
            off[name].append(abs(found[name] / measured[name] - 1.0))
        for said, values in (("measured", measured), ("predicted", found)):
            row = (
                "" if math.isnan(values["hits"]) else f"{100 * values['hits']:.1f}",
                f"{values['TTFT']:.1f}",
                f"{values['TPOT']:.2f}",
            )
            table.add_row(one.name if said == "measured" else "", said, *row, end_section=said == "predicted")
    Console(width=110).print(table)
    for name, bar in BARS.items():
        print(f"{name} within {100 * bar:.0f} %: {sum(each <= bar for each in off[name])} of {len(off[name])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--stages", action="store_true")
    arguments = parser.parse_args()
    (show_fits if arguments.fit else show_stages if arguments.stages else show_runs)()


if __name__ == "__main__":
    main()
