"""The whole catalog as the solver sees it, at one instant: read once and kept until a fact or a price changes.

Between two price steps no price changes, so a snapshot is valid for every instant from one step to the next: the key
is the catalog's revision and the last step's instant, both read in the same transaction as the rows.
"""

import datetime as dt
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlmodel import Session

from catalog.correction_rows import CorrectionSetRow
from service.catalog_release.queries import require_release
from service.constants.needed import require_constants
from service.constants.queries import all_constants
from service.corrections.queries import newest_correction_set
from service.corrections.sets_in_force import Overlay
from service.corrections.snapshot import correction_set, in_force
from service.devices.queries import all_devices
from service.nodes.queries import all_nodes
from service.offers.queries import all_offers, last_price_change, prices_at
from service.recommendations.from_rows import device_from_row, node_from_row, offer_from_rows, prior_from_row
from solver.corrections.applied import CorrectionSet
from solver.errors import FigureMissingError
from solver.hardware import Device, Node, Offer
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from solver.units import GIB_BYTES

MOST_SNAPSHOTS = 4
MOST_CONSTANTS = 32
"""Devices under an engine for a model whose constants a snapshot keeps, at some 60 kB each."""


@dataclass(frozen=True)
class CatalogSnapshot:
    """Everything plannable, and by name what is not.

    digest: of all facts at the revision. seeded_digest: of the files among them. devices: by id. priors: constants of the
    performance model. refused: device id → the figure it lacks. offers: with a price at the instant, ordered by id. providers,
    regions: of every offer stored, priced or not.
    """

    digest: str
    seeded_digest: str
    revision: int
    devices: Mapping[str, Device]
    nodes: Mapping[str, Node]
    offers: tuple[Offer, ...]
    refused: Mapping[str, str]
    device_ids: frozenset[str]
    offer_ids: frozenset[str]
    providers: frozenset[str]
    regions: frozenset[str]
    priors: tuple[ConstantPrior, ...]
    corrections: CorrectionSet | None
    release_set: int
    """Number of the whole set that later ones are laid over; 0 without one."""
    vendors: Mapping[str, str] = field(default_factory=dict)
    """Who makes each device, refused ones too."""
    device_by_node: Mapping[str, str] = field(default_factory=dict)
    """What each machine holds, machines of refused devices too."""
    bought: Mapping[str, str] = field(default_factory=dict)
    """Offers of machines bought for this request alone, by id: how their price comes about."""
    not_bought: Mapping[str, str] = field(default_factory=dict)
    """Devices that nobody rents out and that cannot be bought either: the figure of their costs that is missing."""
    _constants: dict[tuple[str, str, str, bool], Constants] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def constants(self, device: Device, engine: str, llm: str, *, random_weights: bool = False) -> Constants:
        """Those of a device under an engine for a model; many estimates ask for the same."""
        key = (device.id, engine, llm, random_weights)
        found = self._constants.get(key)
        if found is None:
            found = resolve_constants(
                self.priors, device=device.id, family=device.family, engine=engine, llm=llm,
                random_weights=random_weights,
            )  # fmt: skip
            if len(self._constants) >= MOST_CONSTANTS:
                self._constants.clear()
            self._constants[key] = found
        return found

    @property
    def memory_gib_by_device(self) -> dict[str, float | None]:
        """Of every device, null where nobody publishes it: names that people use for devices mention it."""
        known: dict[str, float | None] = dict.fromkeys(self.device_ids)
        return known | {name: device.memory_bytes / GIB_BYTES for name, device in self.devices.items()}

    @property
    def engines(self) -> frozenset[str]:
        """Serving engines that any device is known to run."""
        return frozenset(engine for device in self.devices.values() for engine in device.engines)

    @property
    def partitions(self) -> frozenset[str]:
        """Profiles into which devices can be split, by name."""
        return frozenset(one.profile for device in self.devices.values() for one in device.partitions)

    @property
    def key(self) -> str:
        """Names the facts that predictions start from: the files of the catalog and constants from probes. What users add are
        offers, prices and models, none of which changes a prediction of another: nobody waits for the rest to be tabulated anew."""
        probed = self.corrections.probed if self.corrections is not None else ()
        return self.seeded_digest + "".join(f"/{p.device}:{p.name}={p.value!r}" for p in probed)


class SnapshotCache:
    """Keeps the last few snapshots. Safe for threads: two may read the same snapshot at once, neither sees half."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, dt.datetime | None], CatalogSnapshot] = OrderedDict()
        self._overlay = Overlay()
        self._lock = threading.Lock()

    def at(self, session: Session, price_as_of: dt.datetime) -> CatalogSnapshot:
        """The catalog at ``price_as_of``, with the newest corrections; three small queries when it is known already."""
        snapshot = self._catalog_at(session, price_as_of)
        corrections = self._overlay.over(session, snapshot.corrections)
        if corrections is snapshot.corrections or corrections is None:
            return snapshot
        return replace(snapshot, corrections=corrections, priors=corrections.probed + snapshot.priors)

    def _catalog_at(self, session: Session, price_as_of: dt.datetime) -> CatalogSnapshot:
        release = require_release(session)
        key = (release.digest, release.revision, last_price_change(session, price_as_of))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        snapshot = read_snapshot(session, price_as_of)
        with self._lock:
            self._kept[key] = snapshot
            while len(self._kept) > MOST_SNAPSHOTS:
                self._kept.popitem(last=False)
        return snapshot


def read_snapshot(session: Session, price_as_of: dt.datetime) -> CatalogSnapshot:
    """Read and convert every row. Raises UnavailableError where the rows are not those that this version computes with."""
    release = require_release(session)
    require_constants(session)
    newest = newest_correction_set(session)
    corrections = None if newest is None else CorrectionSetRow.model_validate(newest.content)
    devices: dict[str, Device] = {}
    refused: dict[str, str] = {}
    device_rows = all_devices(session)
    for device_row in device_rows:
        try:
            devices[device_row.id] = device_from_row(device_row.row)
        except FigureMissingError as missing:
            refused[device_row.id] = missing.figure
    node_rows = all_nodes(session)
    nodes = {row.id: node_from_row(row.row, devices[row.device_id]) for row in node_rows if row.device_id in devices}
    classes = {row.id: row.device_class for row in device_rows}
    prices = prices_at(session, price_as_of)
    offer_rows = all_offers(session)
    offers = tuple(
        offer_from_rows(row, prices[row.id], nodes[row.node_id], classes[nodes[row.node_id].device.id])
        for row in offer_rows
        if row.node_id in nodes and row.id in prices and prices[row.id].usd_per_hour is not None
    )
    return CatalogSnapshot(
        digest=release.digest,
        seeded_digest=release.seeded_digest,
        revision=release.revision,
        devices=devices,
        nodes=nodes,
        offers=offers,
        refused=refused,
        device_ids=frozenset(row.id for row in device_rows),
        offer_ids=frozenset(row.id for row in offer_rows),
        providers=frozenset(row.provider for row in offer_rows),
        regions=frozenset(row.region for row in offer_rows),
        # Fitted values go first: of two rows that apply equally, the first is taken.
        priors=in_force(corrections, (prior_from_row(row.row) for row in all_constants(session))),
        corrections=None if corrections is None else correction_set(corrections),
        release_set=0 if corrections is None else corrections.number,
        vendors={row.id: row.row["vendor"] for row in device_rows},
        device_by_node={row.id: row.device_id for row in node_rows},
    )
