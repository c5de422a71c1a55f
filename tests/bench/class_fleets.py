"""Fleet problems with traffic classes from the catalog as it is: real models, nodes, offers and prices.

A workload's requests fall into classes by prompt and reply length, as a router that knows both would sort them. Each
class is screened on its own, so that the table says what one replica serves of every class within the targets.
"""

import datetime as dt
import math
import random
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from service.database import Database
from service.llms.queries import llms_by_ids
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.from_rows import llm_from_row
from solver.candidates.screening import Screened, ScreenedClass, of_classes, screen
from solver.fleet import Demand, FleetProblem
from solver.hardware import Offer
from solver.lengths import uniform_lengths
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput
from solver.recommend.recommend import SpaceMemo, space_of
from solver.workload import Targets, Traffic, TrafficClass, Workload

PRICES_AT = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
"""Fixed, so that prices to come do not change the problems."""
LLMS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-32b",
    "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-20b", "gpt-oss-120b", "gemma-3-4b", "gemma-3-12b", "gemma-3-27b",
    "mistral-7b-v0.3", "mistral-nemo-12b", "mistral-small-24b", "mistral-large-2407-123b", "mixtral-8x7b",
    "qwen2.5-14b", "qwen2.5-72b", "phi-4-14b", "glm-4.5-air", "deepseek-v3.1",
)  # fmt: skip
PROMPT_BUCKETS = 5
LONGEST_TOKENS = 16_000
"""Of prompt and reply together: what the models above with the shortest context take."""
USD_PER_HOUR = (3.0, 100.0)
"""Range of what a workload's traffic is worth, drawn log-evenly, so that no single workload decides the whole."""
TAIL_FRACTION = 0.002
"""Share of requests beyond the first and the last bucket; they are counted into those."""
LOOSER = 1.5
"""Targets that no hardware meets for the longest class are multiplied by this until some does."""


@dataclass(frozen=True)
class CatalogFleets:
    """The catalog, and search spaces already built; ``problem`` draws from both."""

    planning: PlanningInput
    memo: SpaceMemo

    def problem(
        self, seed: int, workloads: int, classes: int, most_nodes: tuple[int, int] | None = None
    ) -> FleetProblem:
        """Workloads of different models, each with traffic worth ``USD_PER_HOUR`` if nodes could be divided.

        most_nodes: range from which each offer's stock is drawn; None leaves it as the catalog has it (unlimited).
        """
        rng = random.Random(f"{seed} {workloads} {classes}")
        names = rng.sample(LLMS, workloads)
        parts = [self._workload(rng, name, classes) for name in names]
        offers = self.planning.offers if most_nodes is None else with_stock(self.planning.offers, *most_nodes, rng)
        return with_classes(replace(self.planning, offers=offers), parts)

    def _workload(self, rng: random.Random, llm: str, classes: int) -> list[tuple[Screened, float]]:
        """Each class screened, with its rate."""
        buckets = length_buckets(rng, classes)
        worth = math.exp(rng.uniform(*map(math.log, USD_PER_HOUR)))
        first_token_s, token_s = rng.uniform(0.6, 3.0), rng.uniform(0.03, 0.09)
        while True:
            targets = Targets({"p95": first_token_s}, {"p95": token_s})
            found = []
            for traffic, share in buckets:
                one = Workload(
                    llm,
                    llm,
                    LONGEST_TOKENS,
                    (TrafficClass(None, share, traffic, targets),),
                    ("bf16", "fp8"),
                    ("bf16", "fp8"),
                    0.85,
                )
                found.append((screen(one, space_of(self.planning, one, self.memo)), share))
            cost = math.fsum(self._usd_per_hour(screened, share) for screened, share in found)
            if math.isfinite(cost):
                return [(screened, share * worth / cost) for screened, share in found]
            first_token_s, token_s = first_token_s * LOOSER, token_s * LOOSER

    def _usd_per_hour(self, screened: Screened, requests_per_s: float) -> float:
        """Least cost of a class's traffic with nodes divisible; infinite where nothing serves it."""
        space = screened.space
        price = np.array(
            [
                min((self.usd_per_device_hour.get(node, math.inf) for node in platform.node_ids), default=math.inf)
                for platform in space.platforms
            ]
        )[space.platform_index]
        devices = [
            row.nodes_per_replica * space.platforms[row.platform].devices if row.nodes_per_replica > 1 else count
            for row, count in zip(space.rows, space.devices_per_replica.tolist(), strict=True)
        ]
        with np.errstate(divide="ignore"):
            return float((price * devices * requests_per_s / (0.85 * screened.only.requests_per_s)).min())

    @cached_property
    def usd_per_device_hour(self) -> dict[str, float]:
        """Of the cheapest offer, by node."""
        least: dict[str, float] = {}
        for offer in self.planning.offers:
            price = offer.usd_per_hour / offer.node.devices
            least[offer.node.id] = min(price, least.get(offer.node.id, price))
        return least


def length_buckets(rng: random.Random, classes: int) -> list[tuple[Traffic, float]]:
    """Lognormal prompts and replies, independent, cut into log-even buckets: (lengths, share) of each pair of them."""
    prompt_edges, prompt_shares = _buckets(rng.choice((300, 600, 1200, 2500)), rng.uniform(0.6, 1.0), PROMPT_BUCKETS)
    output_edges, output_shares = _buckets(
        rng.choice((120, 300, 600)), rng.uniform(0.6, 1.0), classes // PROMPT_BUCKETS
    )
    return [
        (Traffic(uniform_lengths(*prompt), uniform_lengths(*output)), p * o)
        for prompt, p in zip(prompt_edges, prompt_shares, strict=True)
        for output, o in zip(output_edges, output_shares, strict=True)
    ]


def _buckets(median: float, sigma: float, count: int) -> tuple[list[tuple[int, int]], list[float]]:
    reach = -NormalDist().inv_cdf(TAIL_FRACTION) * sigma
    points = [math.log(median) - reach + 2 * reach * i / count for i in range(count + 1)]
    below = [0.0, *(NormalDist(math.log(median), sigma).cdf(x) for x in points[1:-1]), 1.0]
    edges = [min(LONGEST_TOKENS // 2, max(2, round(math.exp(x)))) for x in points]
    return [(low, max(low, high - 1)) for low, high in pairwise(edges)], [b - a for a, b in pairwise(below)]


def with_stock(offers: tuple[Offer, ...], least: int, most: int, rng: random.Random) -> tuple[Offer, ...]:
    return tuple(replace(offer, max_nodes=rng.randint(least, most)) for offer in offers)


def with_classes(planning: PlanningInput, parts: list[list[tuple[Screened, float]]]) -> FleetProblem:
    """One demand a workload with all its classes; a candidate is kept that serves any of them."""
    any_class = [_any_of([screened.only for screened, _ in classes]) for classes in parts]
    assembly: Assembly = assemble(replace(planning, workloads=tuple(one.workload for one in any_class)), any_class)
    table = assembly.problem.deployments
    capacity = np.zeros((len(table), max(len(classes) for classes in parts)))
    for w, classes in enumerate(parts):
        mine = assembly.workload_of == w
        for k, (screened, _) in enumerate(classes):
            capacity[mine, k] = screened.only.requests_per_s[assembly.row_of[mine]]
    demands = tuple(Demand(tuple(rate for _, rate in classes), 0.85) for classes in parts)
    return replace(assembly.problem, deployments=replace(table, capacity_requests_per_s=capacity), demands=demands)


def _any_of(classes: list[ScreenedClass]) -> Screened:
    """The candidates that serve any of the classes, as those of one."""
    best = np.max([one.requests_per_s for one in classes], axis=0)
    most = np.max([one.most_requests_per_s for one in classes], axis=0)
    return of_classes(classes[0].workload, [replace(classes[0], requests_per_s=best, most_requests_per_s=most)])


def catalog_fleets(url: str) -> CatalogFleets:
    """From a seeded database: every offer of every commitment at ``PRICES_AT``."""
    database = Database(url)
    with database.reading() as session:
        snapshot = SnapshotCache().at(session, PRICES_AT)
        shapes = {row.id: llm_from_row(row.row) for row in llms_by_ids(session, set(LLMS))}
    database.close()
    return CatalogFleets(
        PlanningInput(
            workloads=(), shapes=shapes, nodes=tuple(snapshot.nodes.values()), offers=snapshot.offers,
            priors=snapshot.priors, catalog_key=f"{snapshot.digest}/{snapshot.revision}", corrections=snapshot.corrections,
        ),
        {},
    )  # fmt: skip
