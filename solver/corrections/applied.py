"""A correction set: what measurements taught about one engine on one device, and which configurations it reaches.

A set is a plain value: fitted constants, what is left per configuration, and how far predictions were off on
configurations the fit had not seen. Sets are immutable; a new measurement makes a new one.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from solver.corrections.kin import Kin, MeasuredLoad, Relative, Shrinkage, kin_of
from solver.corrections.unseen import with_unseen
from solver.deployment.configuration import Configuration
from solver.hardware import Device
from solver.layout import Layout
from solver.precision import Precision
from solver.prediction.estimate import Correction
from solver.prediction.spreads import in_quadrature, joined, narrowest_of, widest_of
from solver.step.constants import ConstantPrior
from solver.workload import Load

EXACT = (1.0, 1.0)
METRICS = (
    "time_per_output_token",
    "time_per_output_token.p99",
    "output_rate",
    "time_to_first_token",
    "time_to_first_token.p99",
    "end_to_end",
    "power",
)
"""What intervals are measured for; a percentile that was not measured takes the interval of the next one above."""
CLOSED_WHERE_BORROWED = ("time_to_first_token",)
"""Whose spreads of closed loops hold on a sibling device and under other releases too: no other metric's did
(docs/decisions/0091-ranges-of-first-tokens.md)."""
Spreads = Mapping[tuple[str, str], tuple[float, float]]
"""(low, high) factors by (model class, metric)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One configuration on one device under one engine: what uploaded results are gathered by. random_routing: weights of random values
    choose its experts."""

    device: str
    engine: str
    llm: str
    precision: Precision
    layout: Layout
    random_routing: bool = False


def cell_of(configuration: Configuration) -> Cell:
    """What results of this configuration are gathered by."""
    return Cell(
        configuration.device.id,
        configuration.engine.name,
        configuration.shape.id,
        configuration.precision,
        configuration.layout,
        configuration.random_routing,
    )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured of one configuration. factors: measured over predicted by metric, shrunk by how few runs. random_routing: random
    weights sent its tokens to fewer experts than trained ones are expected to, so that it says nothing of a server with those."""

    llm: str
    precision: Precision
    layout: Layout
    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]
    random_routing: bool = False

    def speaks_of(self, cell: Cell) -> bool:
        """Whether it was measured of this configuration, on whichever device: near even routing is that of either kind of weights."""
        is_same = (self.llm, self.precision, self.layout) == (cell.llm, cell.precision, cell.layout)
        return is_same and (cell.random_routing or not self.random_routing)


@dataclass(frozen=True, slots=True)
class EngineCorrection:
    """One engine on one device. spreads: (low, high) factors that hold nine of ten measured values, by
    (model class, metric), on configurations left out of the fit; own_spreads: on runs left out of a configuration
    that was measured. closed_spreads, closed_own_spreads: of closed loops where they have their own
    (``solver.corrections.load_spreads``). precisions: (weights, kv_cache, model class) the fit has seen. borrowed_widening and
    unseen_widening: exponents on a spread where only a sibling, or no model of this class and precision, was measured.
    lent: whether it speaks for other devices of its family, but for strangers among them.
    """

    device: str
    family: str
    engine: str
    versions: tuple[str, ...]
    constants: Mapping[str, float]
    evidence: tuple[Evidence, ...]
    spreads: Mapping[tuple[str, str], tuple[float, float]]
    own_spreads: Mapping[tuple[str, str], tuple[float, float]]
    precisions: frozenset[tuple[str, str, str]]
    borrowed_widening: float
    unseen_widening: float
    lent: bool = True
    strangers: frozenset[str] = frozenset()
    closed_spreads: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    closed_own_spreads: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def of_closed_loops(self, metrics: Collection[str] = METRICS) -> "EngineCorrection":
        """The same for loads that keep a number of requests in flight, in these metrics."""

        def of(all_loads: Spreads, closed: Spreads) -> Spreads:
            return {**all_loads, **{key: spread for key, spread in closed.items() if key[1] in metrics}}

        return replace(
            self,
            spreads=of(self.spreads, self.closed_spreads),
            own_spreads=of(self.own_spreads, self.closed_own_spreads),
        )


@dataclass(frozen=True, slots=True)
class CellEvidence:
    """What uploads, and the catalog's own runs, say about one cell. versions: of the engine, that were measured."""

    versions: tuple[str, ...]
    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Least and largest of measured over predicted among the uploads, by metric."""
    points: tuple[MeasuredLoad, ...] = ()
    """Uploads of closed loops, by load."""


@dataclass(frozen=True, slots=True)
class CorrectionSet:
    """cells: what was learnt since the catalog release was made, by configuration; it goes before the catalog's evidence.
    probed: constants of devices from their own micro-measurements. uploaded: the cells again, by device, engine and model.
    """

    number: int
    corrections: tuple[EngineCorrection, ...] = field(default_factory=tuple)
    cells: Mapping[Cell, CellEvidence] = field(default_factory=dict)
    probed: tuple[ConstantPrior, ...] = ()
    uploaded: Mapping[tuple[str, str, str], tuple[Cell, ...]] = field(default_factory=dict)

    def with_uploads(
        self, number: int, cells: Mapping[Cell, CellEvidence], probed: tuple[ConstantPrior, ...]
    ) -> "CorrectionSet":
        """The same with what uploads taught since, under a number of its own."""
        uploaded: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in cells:
            uploaded.setdefault((cell.device, cell.engine, cell.llm), []).append(cell)
        return replace(
            self, number=number, cells=cells, probed=probed, uploaded={key: tuple(own) for key, own in uploaded.items()}
        )

    def relatives(self, device: str, engine: str, llm: str, *, random_routing: bool = False) -> list[Relative]:
        """Measured configurations of a model on a device under an engine; none where nothing was uploaded."""
        own = [cell for cell in self.uploaded.get((device, engine, llm), ()) if cell.random_routing == random_routing]
        if not own:
            return []
        taken = {(cell.precision, cell.layout) for cell in own}
        known = [
            Relative(cell.precision.weights, c.versions, c.benchmarks, c.factors, True, c.points, cell.layout)
            for cell, c in ((cell, self.cells[cell]) for cell in own)
        ]
        return known + [
            Relative(e.precision.weights, home.versions, e.benchmarks, e.factors, False, layout=e.layout)
            for home in self.corrections
            if (home.device, home.engine) == (device, engine)
            for e in home.evidence
            if e.llm == llm and (random_routing or not e.random_routing) and (e.precision, e.layout) not in taken
        ]


def found_for(current: CorrectionSet, device: str, family: str, engine: str) -> EngineCorrection | None:
    """The correction of this device under this engine, else of the sibling of its family with most runs."""
    own = [c for c in current.corrections if c.engine == engine and c.device == device]
    siblings = [
        c
        for c in current.corrections
        if (c.engine, c.family) == (engine, family) and c.lent and device not in c.strangers
    ]
    siblings.sort(key=lambda c: -sum(len(e.benchmarks) for e in c.evidence))
    return next(iter(own + siblings), None)


def correction_for(
    current: CorrectionSet,
    *,
    device: str,
    family: str,
    engine: str,
    version: str | None,
    llm: str,
    model_class: str,
    precision: Precision,
    layout: Layout,
    kin_shrinkage: Callable[[], Shrinkage] | None = None,
    closed_loop: bool = False,
    random_routing: bool = False,
) -> Correction | None:
    """What the set says about one configuration; None where nothing measured reaches it.

    basis: measured (this configuration was benchmarked), corrected (its device and engine were), borrowed (a sibling
    device, or an engine version nobody measured: then the widest spread of any device of the family holds, since one that
    few runs made is no measure of what another version does).
    kin_shrinkage: asked where other configurations of the model were uploaded, whose factors this one then shares
    (``solver.corrections.kin``); without it they say nothing.
    random_routing: of random weights that choose among experts; what was measured so speaks of no other.
    closed_loop: of a number of requests in flight, whose spreads are apart where this engine version was measured on this device, and
    for mean times to first tokens elsewhere too.
    """
    found = found_for(current, device, family, engine)
    at_home = found is not None and found.device == device and (version is None or version in found.versions)
    if closed_loop and at_home and found is not None:
        found = found.of_closed_loops()
    asked = Cell(device, engine, llm, precision, layout, random_routing)
    cell = current.cells.get(asked)
    if cell is not None and (version is None or version in cell.versions):
        home = found if found is not None and found.device == device else None
        spreads = _by_metric(home.own_spreads, model_class, home.unseen_widening) if home is not None else {}
        return Correction("measured", cell.benchmarks, with_followers(cell.factors), spreads, cell.ranges)
    relatives = (
        current.relatives(device, engine, llm, random_routing=random_routing) if kin_shrinkage is not None else []
    )
    kin = (
        kin_of(relatives, precision.weights, version, kin_shrinkage(), layout)
        if kin_shrinkage is not None and relatives
        else None
    )
    shared = with_followers(kin.factors) if kin is not None else {}
    by_load = partial(_kin_at, kin) if kin is not None and kin.relatives else None
    cited = kin.benchmarks if kin is not None else ()
    if found is None:
        return Correction("borrowed", cited, shared, by_load=by_load) if kin is not None else None
    own = next((e for e in found.evidence if e.speaks_of(asked)), None)
    if at_home and own is not None:
        spreads = _by_metric(found.own_spreads, model_class, found.unseen_widening)
        return Correction("measured", own.benchmarks, with_followers(own.factors), spreads)
    widening = 1.0 if at_home else found.borrowed_widening
    if (precision.weights, precision.kv_cache, model_class) not in found.precisions:
        widening *= found.unseen_widening
    evidence = (*cited, *(b for e in found.evidence for b in e.benchmarks[:1] if b not in cited))
    measured = (
        [found] if at_home else [c for c in current.corrections if (c.family, c.engine) == (found.family, engine)]
    )
    if closed_loop and not at_home:
        measured = [c.of_closed_loops(CLOSED_WHERE_BORROWED) for c in measured]
    spreads = _widened(measured, model_class, widening)
    return Correction("corrected" if at_home else "borrowed", evidence, shared, spreads, by_load=by_load)


def _kin_at(kin: Kin, clients: float, prompt_tokens: float, output_tokens: float) -> Mapping[str, float]:
    return with_followers(kin.at(clients, prompt_tokens, output_tokens))


def _widened(measured: Sequence[EngineCorrection], model_class: str, exponent: float) -> dict[str, tuple[float, float]]:
    """The widest spreads of a model class, and on top what was not measured adds.

    That is as much as makes the interval of the class known best ``exponent`` times as wide in logarithms. How another device or
    format differs does not grow with how badly a class of models is predicted: independent errors add in squares.
    """

    def widest(name: str) -> dict[str, tuple[float, float]]:
        return widest_of(_by_metric(c.spreads, name, c.unseen_widening) for c in measured)

    known, share = widest(model_class), math.sqrt(max(exponent * exponent - 1.0, 0.0))
    if share <= 0.0:
        return known
    best = narrowest_of(widest(name) for name in sorted({name for c in measured for name, _ in c.spreads}))
    return {
        metric: in_quadrature(spread, (best[metric][0] ** share, best[metric][1] ** share))
        for metric, spread in known.items()
    }


def with_followers(factors: Mapping[str, float]) -> Mapping[str, float]:
    """With factors of what few tools report: gaps between tokens, whole requests and first tokens after hidden ones, which are
    mostly later tokens, follow the time per output token.

    >>> with_followers({"time_per_output_token": 0.8, "end_to_end": 0.9})
    {'inter_token': 0.8, 'end_to_end': 0.9, 'time_to_first_answer': 0.8, 'time_per_output_token': 0.8}
    """
    per_token = factors.get("time_per_output_token")
    if per_token is None:
        return factors
    return {"inter_token": per_token, "end_to_end": per_token, "time_to_first_answer": per_token, **factors}


def configuration_correction(
    current: CorrectionSet | None, configuration: Configuration, load: Load | None = None
) -> Correction | None:
    """The same for a configuration as the solver holds it. One that drafts, serves adapters, sees images, keeps its cache on a disk or
    answers from several processes is in no fit: what was, its model bare, is carried over. load: spreads are of its kind where that has
    its own, else of any."""
    if current is None:
        return None
    shape = configuration.shape
    as_measured = configuration.speculation is None and shape.adapters is None and shape.images is None
    as_measured = as_measured and not shape.guided_fraction and not configuration.engine.disk_cache_bytes
    as_measured = as_measured and configuration.engine.api_servers == 1
    model_class = configuration.shape.told_by
    found = correction_for(
        current,
        device=configuration.device.id,
        family=configuration.device.family,
        engine=configuration.engine.name,
        version=configuration.engine.version,
        llm=configuration.shape.id,
        model_class=model_class,
        precision=configuration.precision,
        layout=configuration.layout,
        kin_shrinkage=lambda: Shrinkage(
            *(configuration.constants.si(name) for name in ("kin_shrinkage", "kin_run_shrinkage", "kin_bandwidth"))
        ),
        closed_loop=as_measured and load is not None and load.kind == "closed",
        random_routing=configuration.random_routing,
    )
    if configuration.device.partition is not None:
        found = on_instance(current, configuration.device, configuration.engine.name, model_class)
    unstated = configuration.engine.any_release and configuration.engine.version is None
    # What was uploaded, and states ranges, is of the very engine that is asked about.
    if found is not None and unstated and not found.ranges:
        released = configuration.constants.range_si("interval_release_miss")
        found = replace(found, spreads=joined(found.spreads, released, released))
    if found is not None and not found.ranges:
        own = (configuration.device.id, configuration.engine.name)
        seen = {e.precision.weights for c in current.corrections if (c.device, c.engine) == own for e in c.evidence}
        is_measured = found.basis == "measured"
        found = replace(found, spreads=with_unseen(found.spreads, configuration, seen, is_measured=is_measured))
    device = configuration.device
    return found if as_measured else carried_over(current, device, configuration.engine.name, found)


def on_instance(current: CorrectionSet, device: Device, engine: str, model_class: str) -> Correction | None:
    """What measurements of whole devices say about an instance of a split one, which nobody measured.

    Borrowed: the spread of configurations left out of the fit, as much wider as for a device and a model that were not seen.
    Factors of measured configurations are left out: they are what remains of runs on whole devices.
    """
    home = found_for(current, device.id, device.family, engine)
    if home is None:
        return None
    evidence = tuple(b for e in home.evidence for b in e.benchmarks[:1])
    spreads = _widened((home,), model_class, home.borrowed_widening * home.unseen_widening)
    return Correction("borrowed", evidence, {}, spreads)


def pool_correction(current: CorrectionSet | None, configuration: Configuration) -> Correction | None:
    """What the set says about a pool that only prefills or only decodes: nobody measured one."""
    found = configuration_correction(current, configuration)
    if current is None:
        return found
    return carried_over(current, configuration.device, configuration.engine.name, found)


def carried_over(current: CorrectionSet, device: Device, engine: str, found: Correction | None) -> Correction | None:
    """A correction for a way of serving that nobody measured: borrowed, and as much wider as for a device and a model
    that were not seen. The factors stay: they are of the same kernels on the same device."""
    home = found_for(current, device.id, device.family, engine)
    if found is None or home is None:
        return found if found is None else replace(found, basis="borrowed", spreads={})
    widening = home.borrowed_widening * home.unseen_widening
    spreads = {metric: (low**widening, high**widening) for metric, (low, high) in found.spreads.items()}
    return replace(found, basis="borrowed", spreads=spreads)


def _by_metric(
    spreads: Mapping[tuple[str, str], tuple[float, float]], model_class: str, widening: float
) -> dict[str, tuple[float, float]]:
    """Spreads of a model class; the widest of the others, widened, where this one was never measured."""
    result: dict[str, tuple[float, float]] = {}
    for metric in METRICS:
        own = spreads.get((model_class, metric))
        others = [s for (_, m), s in spreads.items() if m == metric]
        if own is not None:
            result[metric] = own
        elif others:
            result[metric] = (min(s[0] for s in others) ** widening, max(s[1] for s in others) ** widening)
    # Between the mean and the 99th percentile the wider of the two holds; tokens' gaps follow TPOT.
    for metric in ("time_to_first_token", "time_per_output_token"):
        if metric in result and f"{metric}.p99" in result:
            low, high = result[metric], result[f"{metric}.p99"]
            for name in ("p50", "p90", "p95"):
                result[f"{metric}.{name}"] = (min(low[0], high[0]), max(low[1], high[1]))
    if "time_per_output_token.p99" in result:
        result["inter_token"] = result["time_per_output_token.p99"]
    return result


def joined_factor(release_factor: float, release_runs: int, log_ratios: list[float], shrinkage: float = 2.0) -> float:
    """The factor of a configuration from the catalog's own runs, known by their shrunk factor, and later residuals.

    The catalog's median is what its factor was shrunk from; it counts once for each of its runs.

    >>> round(joined_factor(1.0, 0, [math.log(1.1)] * 2), 4), round(joined_factor(1.0488, 2, []), 4)
    (1.0488, 1.0488)
    """
    median = math.log(release_factor) * (release_runs + shrinkage) / release_runs if release_runs else 0.0
    return shrunk_factor([median] * release_runs + log_ratios, shrinkage)


def quantile_spread(log_ratios: list[float], coverage: float = 0.9) -> tuple[float, float]:
    """Conformal interval of ln(measured/predicted): the ⌈(n+1)·coverage⌉-th smallest absolute value, on both sides.

    With exchangeable residuals it holds a new value with at least the stated probability (Vovk et al., 2005).

    >>> low, high = quantile_spread([0.01, -0.02, 0.03, -0.04, 0.05, 0.1, -0.1, 0.02, 0.0, 0.03])
    >>> round(math.log(high), 2), round(math.log(low), 2)
    (0.1, -0.1)
    """
    if not log_ratios:
        return 0.5, 2.0
    ordered = sorted(abs(r) for r in log_ratios)
    rank = min(len(ordered), math.ceil((len(ordered) + 1) * coverage))
    half = ordered[rank - 1]
    return math.exp(-half), math.exp(half)


def shrunk_factor(log_ratios: list[float], shrinkage: float = 2.0) -> float:
    """Median of measured over predicted, pulled towards 1 as if ``shrinkage`` more runs had agreed with the prediction.

    >>> shrunk_factor([]), round(shrunk_factor([math.log(1.1)] * 2), 4)
    (1.0, 1.0488)
    """
    if not log_ratios:
        return 1.0
    ordered = sorted(log_ratios)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0
    return math.exp(median * len(ordered) / (len(ordered) + shrinkage))
