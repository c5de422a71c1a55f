"""What the planner does in a second: over HTTP, in the search alone, and in the simulator."""

import datetime as dt
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.llms.queries import llms_by_ids
from service.migrate import migrate
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.check import check_traffic
from service.recommendations.from_rows import llm_from_row
from service.recommendations.plan import PlanningInputs, planning_input
from service.recommendations.spaces import SpaceCache
from service.seeding import seed
from service.wire.recommendations import RecommendationIn
from solver.candidates.screening import screen
from solver.engine.simulate import simulate
from solver.planning.assemble import assemble
from solver.planning.types import PlanningInput
from solver.recommend.recommend import space_of
from solver.replay.one_stream import poisson_arrivals_s
from solver.sessions import spread_lengths
from tests.bench.server_process import ServerProcess
from tests.bench.workloads import LLMS, requests

WARM_UP_SEED, SEED = 90, 7


@dataclass(frozen=True)
class Answers:
    """seconds: of each request as its client sees them. mean_cpu_s: the server's processor time a request."""

    seconds: tuple[float, ...]
    mean_cpu_s: float
    proven: int
    infeasible: int

    def quantile(self, fraction: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, round(fraction * (len(ordered) - 1)))]


def seeded_database(path: Path) -> str:
    url = f"sqlite:///{path}"
    database = Database(url)
    migrate(database)
    with database.writing() as session:
        seed(session, read_catalog(), system_clock)
    database.close()
    return url


def measured_start(server: ServerProcess) -> float:
    """Seconds from starting the process to its first ready answer."""
    began = time.perf_counter()
    server.start()
    return time.perf_counter() - began


def peak_mib(pid: int) -> float:
    """Largest resident set so far (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024.0
    return float("nan")


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far, all its threads (Linux): what a busy machine does not distort."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def recommendations(server: ServerProcess, count: int, workloads: int) -> Answers:
    """POST ``count`` different requests one after the other, after one for each model to warm up."""
    seconds: list[float] = []
    proven = infeasible = 0
    with httpx.Client(base_url=server.address, timeout=300) as client:
        for llm in LLMS:
            body = requests(1, workloads, WARM_UP_SEED)[0]
            for one in body["workloads"]:
                one["llm"] = llm
            post(client, body)
        used_before = cpu_s(server.pid)
        for body in requests(count, workloads, SEED):
            began = time.perf_counter()
            answer = post(client, body)
            seconds.append(time.perf_counter() - began)
            infeasible += answer["outcome"] == "infeasible"
            proven += answer["solve"]["status"] in ("proven_optimal", "proven_infeasible")
        used = (cpu_s(server.pid) - used_before) / count
    return Answers(tuple(seconds), used, proven, infeasible)


def post(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/recommendations", json=body)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


def planning_of(url: str, body: dict[str, Any], spaces: SpaceCache) -> PlanningInput:
    """What the solver is given for a request, read from the database as the service reads it."""
    asked = RecommendationIn.model_validate(body)
    now = dt.datetime.now(dt.UTC)
    database = Database(url)
    with database.reading() as session:
        snapshot = SnapshotCache().at(session, now)
        shapes = {r.id: llm_from_row(r.row) for r in llms_by_ids(session, {w.llm for w in asked.workloads})}
    database.close()
    return planning_input(PlanningInputs(asked, snapshot, shapes, check_traffic(asked, shapes), now, None, spaces))


def candidates_per_s(url: str, repeats: int = 9) -> tuple[int, float]:
    """(candidates, candidates a second): every layout and precision on every offer of its node type, screened under
    traffic and targets and put into the optimiser's table. Median of ``repeats``; the step times of the model are
    tabulated before, as they are in a warm service."""
    spaces = SpaceCache()
    planning = planning_of(url, requests(1, 1, SEED)[0], spaces)
    workload = planning.workloads[0]
    space = space_of(planning, workload, spaces)
    offers_of_node: dict[str, int] = {}
    for offer in planning.offers:
        offers_of_node[offer.node.id] = offers_of_node.get(offer.node.id, 0) + 1
    offers = [sum(offers_of_node.get(node, 0) for node in platform.node_ids) for platform in space.platforms]
    candidates = sum(offers[row.platform] for row in space.rows)
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        assemble(planning, [screen(workload, space)])
        taken.append(time.perf_counter() - began)
    return candidates, candidates / statistics.median(taken)


def simulated_requests_per_s(url: str, count: int = 20_000) -> float:
    """Requests a second that one core replays through one engine replica under Poisson arrivals."""
    spaces = SpaceCache()
    planning = planning_of(url, requests(1, 1, SEED)[0], spaces)
    workload = planning.workloads[0]
    screened = screen(workload, space_of(planning, workload, spaces)).only
    row = int(screened.requests_per_s.argmax())
    configuration = screened.space.configuration(row)
    tables, schedule, traffic = configuration.tables(), configuration.schedule(), workload.traffic
    rng = np.random.default_rng(SEED)
    prompts, outputs = spread_lengths(traffic.prompt, count, rng), spread_lengths(traffic.output, count, rng)
    rate = 0.5 * float(screened.requests_per_s[row]) / configuration.lanes
    arrivals = poisson_arrivals_s(rate, count, rng)
    simulate(tables, schedule, prompts[:1], outputs[:1], arrivals_s=arrivals[:1])  # loads the compiled simulation
    began = time.perf_counter()
    simulate(tables, schedule, prompts, outputs, arrivals_s=arrivals)
    return count / (time.perf_counter() - began)
