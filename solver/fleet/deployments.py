"""Ways of running workloads on node types, as the columns of one table: what each serves, takes and may share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from solver.errors import InvalidInputError

Role = Literal["aggregated", "prefill", "decode"]
"""aggregated: prefills and decodes. prefill, decode: one side of an exchange, whose caches travel to the other."""
ROLES: tuple[Role, ...] = ("aggregated", "prefill", "decode")
AGGREGATED, PREFILL, DECODE = range(3)
ANY_SITE = -1
WHOLE = -1
"""``DeploymentTable.split`` of a replica on whole devices."""
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Split:
    """A device divided into ``instances`` equal parts that work apart, all of one profile (MIG)."""

    name: str
    instances: int

    def __post_init__(self) -> None:
        if self.instances < 2:
            raise InvalidInputError(f"split {self.name}: a split device has at least two instances")


@dataclass(frozen=True, slots=True)
class Deployment:
    """One way of running one workload on one node type.

    devices_per_replica: devices of one node that a replica takes; ignored when ``nodes_per_replica`` > 1, because a
    replica over several nodes takes them whole. capacity_requests_per_s: by traffic class, alone on the replica.
    regions: where it serves that much, because users are so far away; None is anywhere. split: how its one device is
    divided, of which a replica takes one instance; None is not at all. exchange: what the other side of an exchange must
    share with a prefill or decode replica, beside provider and region. copies: of the model that a replica has, each with a cache of
    its own.
    """

    workload: int
    node_type_id: str
    devices_per_replica: int
    nodes_per_replica: int
    capacity_requests_per_s: tuple[float, ...]
    power_w_per_replica: float
    key: int
    regions: frozenset[str] | None = None
    split: Split | None = None
    role: Role = "aggregated"
    exchange: str = ""
    copies: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class DeploymentTable:
    """Deployments as columns; tens of thousands of them are read by numpy, never one by one.

    node_type: index into ``node_type_ids``. capacity_requests_per_s: rows × classes, zero where a workload has fewer
    classes. key: unique and the caller's own; plans name deployments by it. site: index into ``sites``, the regions
    where a deployment may run; ANY_SITE is anywhere, and None says so of all. split: index into ``splits``, where a
    replica takes one instance of a device divided so; WHOLE is not divided, and None says so of all. role: index into
    ``ROLES``; None: all are aggregated. exchange: of prefill and decode rows, a number of what both sides must share.
    copies: of the model in a replica, counted by ``Demand.most_copies``; None: one in all.
    """

    node_type_ids: tuple[str, ...]
    workload: IntArray
    node_type: IntArray
    devices_per_replica: IntArray
    nodes_per_replica: IntArray
    capacity_requests_per_s: FloatArray
    power_w_per_replica: FloatArray
    key: IntArray
    site: IntArray | None = None
    sites: tuple[frozenset[str], ...] = ()
    split: IntArray | None = None
    splits: tuple[Split, ...] = ()
    role: IntArray | None = None
    exchange: IntArray | None = None
    copies: IntArray | None = None

    def __post_init__(self) -> None:
        rows = len(self.key)
        columns = (self.workload, self.node_type, self.devices_per_replica, self.nodes_per_replica)
        if any(len(column) != rows for column in (*columns, self.capacity_requests_per_s, self.power_w_per_replica)):
            raise InvalidInputError("columns of a deployment table differ in length")
        if self.capacity_requests_per_s.ndim != 2:
            raise InvalidInputError("capacity needs one column for each traffic class")
        if len(np.unique(self.key)) != rows:
            raise InvalidInputError("deployment keys are not unique")
        if rows == 0:
            return
        if self.site is not None and (
            len(self.site) != rows or self.site.min() < ANY_SITE or self.site.max() >= len(self.sites)
        ):
            raise InvalidInputError("a deployment names an unknown site")
        self._check_splits(rows)
        self._check_roles(rows)
        if self.copies is not None and (len(self.copies) != rows or self.copies.min() < 1):
            raise InvalidInputError("a replica has at least one copy of its model")
        if self.node_type.min() < 0 or self.node_type.max() >= len(self.node_type_ids):
            raise InvalidInputError("a deployment names an unknown node type")
        if self.devices_per_replica.min() < 1 or self.nodes_per_replica.min() < 1 or self.workload.min() < 0:
            raise InvalidInputError("a replica needs at least one device, one node and a workload")
        for column in (self.capacity_requests_per_s, self.power_w_per_replica):
            if not np.isfinite(column).all() or (column < 0).any():
                raise InvalidInputError("capacities and power must be finite and not negative")

    def _check_splits(self, rows: int) -> None:
        if self.split is None:
            return
        if len(self.split) != rows or self.split.min() < WHOLE or self.split.max() >= len(self.splits):
            raise InvalidInputError("a deployment names an unknown split")
        divided = self.split >= 0
        if (self.devices_per_replica[divided] > 1).any() or (self.nodes_per_replica[divided] > 1).any():
            raise InvalidInputError("a replica on an instance of a split device takes that one instance only")

    def _check_roles(self, rows: int) -> None:
        if (self.role is None) != (self.exchange is None):
            raise InvalidInputError("roles need exchanges, and exchanges roles")
        if self.role is None or self.exchange is None:
            return
        if len(self.role) != rows or self.role.min() < AGGREGATED or self.role.max() > DECODE:
            raise InvalidInputError("a deployment has an unknown role")
        if len(self.exchange) != rows or (self.exchange[self.role != AGGREGATED] < 0).any():
            raise InvalidInputError("prefill and decode need an exchange")

    @property
    def roles(self) -> IntArray:
        """The role of each deployment, an index into ``ROLES``."""
        return np.zeros(len(self), dtype=np.int64) if self.role is None else self.role

    @property
    def copies_of_model(self) -> IntArray:
        """Copies of the model in a replica of each deployment."""
        return np.ones(len(self), dtype=np.int64) if self.copies is None else self.copies

    @property
    def instances(self) -> IntArray:
        """Into how many instances, of which a replica takes one, its device is divided: 1 is not at all."""
        counts = np.array([*(split.instances for split in self.splits), 1], dtype=np.int64)
        return np.ones(len(self), dtype=np.int64) if self.split is None else counts[self.split]

    @classmethod
    def from_rows(cls, rows: Sequence[Deployment]) -> "DeploymentTable":
        """Columns from one object each; for tests and small problems."""
        node_types = tuple(dict.fromkeys(row.node_type_id for row in rows))
        index = {node_type: i for i, node_type in enumerate(node_types)}
        classes = max((len(row.capacity_requests_per_s) for row in rows), default=1)
        capacity = np.zeros((len(rows), classes))
        for i, row in enumerate(rows):
            capacity[i, : len(row.capacity_requests_per_s)] = row.capacity_requests_per_s
        return cls(
            node_types,
            np.array([row.workload for row in rows], dtype=np.int64),
            np.array([index[row.node_type_id] for row in rows], dtype=np.int64),
            np.array([row.devices_per_replica for row in rows], dtype=np.int64),
            np.array([row.nodes_per_replica for row in rows], dtype=np.int64),
            capacity,
            np.array([row.power_w_per_replica for row in rows], dtype=np.float64),
            np.array([row.key for row in rows], dtype=np.int64),
            *_sites(rows),
            *_splits(rows),
            *_roles(rows),
            copies=np.array([row.copies for row in rows], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: IntArray | BoolArray) -> "DeploymentTable":
        """The same table with only these rows; keys stay."""
        return replace(
            self,
            workload=self.workload[rows],
            node_type=self.node_type[rows],
            devices_per_replica=self.devices_per_replica[rows],
            nodes_per_replica=self.nodes_per_replica[rows],
            capacity_requests_per_s=self.capacity_requests_per_s[rows],
            power_w_per_replica=self.power_w_per_replica[rows],
            key=self.key[rows],
            site=None if self.site is None else self.site[rows],
            split=None if self.split is None else self.split[rows],
            role=None if self.role is None else self.role[rows],
            exchange=None if self.exchange is None else self.exchange[rows],
            copies=None if self.copies is None else self.copies[rows],
        )

    def sites_of(self, region: str) -> frozenset[int]:
        """The sites a region belongs to."""
        return frozenset(number for number, regions in enumerate(self.sites) if region in regions)


def _sites(rows: Sequence[Deployment]) -> tuple[IntArray | None, tuple[frozenset[str], ...]]:
    named = tuple(dict.fromkeys(row.regions for row in rows if row.regions is not None))
    if not named:
        return None, ()
    numbers = [ANY_SITE if row.regions is None else named.index(row.regions) for row in rows]
    return np.array(numbers, dtype=np.int64), named


def _splits(rows: Sequence[Deployment]) -> tuple[IntArray | None, tuple[Split, ...]]:
    named = tuple(dict.fromkeys(row.split for row in rows if row.split is not None))
    if not named:
        return None, ()
    return np.array([WHOLE if row.split is None else named.index(row.split) for row in rows], dtype=np.int64), named


def _roles(rows: Sequence[Deployment]) -> tuple[IntArray | None, IntArray | None]:
    if all(row.role == "aggregated" for row in rows):
        return None, None
    named = sorted({row.exchange for row in rows})
    exchanges = [named.index(row.exchange) for row in rows]
    return np.array([ROLES.index(row.role) for row in rows], dtype=np.int64), np.array(exchanges, dtype=np.int64)
