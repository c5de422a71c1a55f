"""Defaults of a comparison: rows of the cost catalog become figures of the cost model, each with its source.

The one place where cost rows are put together. What the catalog lacks stays missing; the solver refuses it by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from catalog.cost_rows import CostFigureRow, OperatorRow, PricePoint
from catalog.read_costs import ANY_SUBJECT, CostCatalog
from catalog.rows import EnergyRow
from solver.tco.errors import CostInputError
from solver.tco.figures import Figure
from solver.tco.operating import staff_fte

MARKET_CHANGES = (
    "rent_change_fraction_per_year",
    "api_change_fraction_per_year",
    "hardware_change_fraction_per_year",
)
DESKTOP_KINDS = frozenset(("workstation", "unified_desktop", "edge_board"))
"""Node kinds that stand by somebody's desk: no cage, no cluster network, no staff of their own."""
CPU_SERVER = "cpu_server"
PARTS_AROUND = {"workstation": "workstation_parts_usd", CPU_SERVER: "cpu_server_parts_usd"}
"""Node kinds that are built of devices and parts, and the cost of everything but the devices."""
SERVER_KINDS = frozenset(("hgx_8", "oam_8", "pcie_server"))
"""Node kinds that the catalog's prices and power of servers around accelerators hold for."""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What defaults depend on, in datasheet units, from the device and node catalog."""

    node: str
    device: str
    devices: int
    kind: str
    device_power_limit_w: float | None = None
    host_power_w: float | None = None
    psu_w: float | None = None
    pcie_lanes_per_device: int | None = None
    instance: bool = False
    """A cloud's instance type, which nobody sells: what is bought in its place is the machine it is a part of."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a part of a figure comes from."""

    source: str
    as_of: str
    checked: str


@dataclass(frozen=True, slots=True)
class Default:
    """A figure taken from the catalog, what it was made of, and how."""

    figure: Figure
    unit: str
    origins: tuple[Origin, ...]
    how: str = ""


FREE = Figure(0.0, 0.0, 0.0)
BY_A_DESK = "none: the machine stands by a desk"


@dataclass(frozen=True, slots=True)
class CostDefaults:
    """Defaults for one class of operator, from one catalog release of the cost catalog."""

    costs: CostCatalog
    operator: OperatorRow

    def scenario(self, region: str | None, energy: EnergyRow | None) -> dict[str, Default]:
        """Shared inputs. Without a tariff or carbon row of the region that input is missing."""
        rows = {
            "grid_kg_co2e_per_kwh": None if region is None else self._grid(region),
            "demand_charge_usd_per_kw_month": self.costs.find("demand_charge_usd_per_kw_month"),
            "water_l_per_kwh": self.costs.find("water_l_per_kwh"),
            "power_usage_effectiveness": self.costs.find(
                "power_usage_effectiveness", self.operator.power_usage_effectiveness
            ),
            "discount_fraction_per_year": self.costs.find(
                "cost_of_capital_fraction_per_year", self.operator.cost_of_capital
            ),
            "inflation_fraction_per_year": self.costs.find("inflation_fraction_per_year"),
            **{name: self.costs.find(name) for name in MARKET_CHANGES},
            "tax_fraction": self.costs.find("tax_fraction"),
        }
        defaults = {name: _as_stated(row) for name, row in rows.items() if row is not None}
        return defaults | ({} if energy is None else _energy(energy))

    def _grid(self, region: str) -> CostFigureRow | None:
        """Carbon of the region, or of its country where the tariff is of a part of it."""
        return self.costs.find("grid_kg_co2e_per_kwh", region) or self.costs.find(
            "grid_kg_co2e_per_kwh", region.split("-")[0]
        )

    def rented_hall(self) -> dict[str, Default]:
        """Halls that machines are rented in, where their operator gives no figure of its own."""
        hall = self._subject("power_usage_effectiveness", "modern")
        return {} if hall is None else {"power_usage_effectiveness": hall}

    def egress(self, provider: str) -> Default | None:
        """Price of data sent out: the provider's own row, else the one for any."""
        row = self.costs.find("egress_usd_per_gb", provider) or self.costs.find("egress_usd_per_gb")
        return None if row is None else _as_stated(row)

    def plain(self, name: str) -> Default | None:
        """A figure that is the same for everybody."""
        return self._plain(name).get(name)

    def spot(self) -> dict[str, Default]:
        return self._plain("spot_interruptions_per_node_month", "spot_lost_hours_per_interruption")

    def commitment_ratio(self, provider: str, commitment: str) -> Default | None:
        """Price of a commitment relative to on demand: the provider's own row, else the one for any provider."""
        for owner in (provider, ANY_SUBJECT):
            row = self.costs.find("commitment_price_ratio", f"{owner}:{commitment}")
            if row is not None:
                return _as_stated(row)
        return None

    def upfront_ratio(self, provider: str, payment: str) -> Default | None:
        """Price of a commitment paid (partly) upfront relative to the same paid month by month, where it is known."""
        row = self.costs.find("upfront_price_ratio", f"{provider}:{payment}")
        return None if row is None else _as_stated(row)

    def whole_machine(self, machine: MachineFacts) -> MachineFacts:
        """What is sold: the rack that a tray is of, the server that a slice of a cloud is of; else the node itself."""
        if machine.kind == "nvl_rack":
            rows = (self.costs.find(name, machine.device) for name in ("system_all_in_usd", "system_purchase_usd"))
            devices = next((row.devices for row in rows if row is not None and row.devices), machine.devices)
            kind = machine.kind
        elif machine.instance and machine.kind in {*SERVER_KINDS, "other"}:
            parts = self.costs.find("server_parts_usd")
            devices = machine.devices if parts is None or parts.devices is None else parts.devices
            kind = machine.kind if machine.kind in SERVER_KINDS else "pcie_server"
        else:
            return machine
        if devices <= machine.devices:
            return replace(machine, kind=kind)
        host = machine.host_power_w
        host = None if host is None else host * devices / machine.devices
        return replace(machine, devices=devices, kind=kind, host_power_w=host, psu_w=None)

    def power(self, machine: MachineFacts) -> dict[str, Default]:
        """Peak draw of a node and how much of it is used."""
        defaults = self._plain("idle_power_fraction", "serving_power_fraction")
        peak = self._peak_w(machine)
        return defaults | ({"peak_w_per_node": peak} if peak is not None else {})

    def _peak_w(self, machine: MachineFacts) -> Default | None:
        row = self.costs.find("all_in_power_kw_per_device", machine.device)
        if row is not None:
            return _combined([(row, machine.devices * 1000.0)], "W", "all-in power per device times devices")
        if machine.device_power_limit_w is None:
            return None
        limit_w = machine.devices * machine.device_power_limit_w
        other = self.costs.find("server_other_power_w_per_device")
        if machine.host_power_w is not None:
            total = limit_w + machine.host_power_w
            return Default(Figure(total, total, total), "W", (), "power limits of the devices plus the host's power")
        around, what = None, "server"
        if machine.kind in SERVER_KINDS and other is not None:
            around = _scaled(other, float(machine.devices))
        elif machine.kind in (*DESKTOP_KINDS, CPU_SERVER):
            other, what = self.costs.find("machine_other_power_w", machine.kind), "machine"
            around = None if other is None else _scaled(other, 1.0)
        if other is None or around is None:
            return None
        return Default(
            Figure(limit_w + around.low, limit_w + around.typical, limit_w + around.high),
            "W",
            (_origin(other),),
            f"power limits of the devices plus everything else in a {what}",
        )

    def ownership(self, machine: MachineFacts, nodes: int) -> dict[str, Default]:
        """Everything a bought node needs: price, network, storage, life, running. Missing prices are left out."""
        defaults = self._plain(
            "residual_fraction_after_3_years",
            "residual_fraction_after_5_years",
            "spare_fraction",
            "support_fraction_per_year",
            "insurance_fraction_per_year",
            "staff_usd_per_fte_year",
        )
        optional = {
            **self._prices(machine),
            "maintenance_fraction_per_year": self._pointed("maintenance_fraction_per_year", "maintenance"),
            "colocation_usd_per_kw_month": self._subject("colocation_usd_per_kw_month", self.operator.colocation)
            if machine.kind not in DESKTOP_KINDS
            else Default(FREE, "USD per kW-month", (), BY_A_DESK),
            "power_usage_effectiveness": self._subject("power_usage_effectiveness", "liquid_cooled")
            if machine.kind == "nvl_rack"
            else None,
            "finance_fraction_per_year": self._subject(
                "cost_of_capital_fraction_per_year", self.operator.cost_of_capital
            ),
            "staff_fte_per_node": self._staff(machine, nodes),
        }
        return defaults | self.power(machine) | {name: value for name, value in optional.items() if value is not None}

    def load_fraction(self, name: str, subject: str = ANY_SUBJECT) -> float:
        """How much of a power supply's or a breaker's rating may be used for hours on end; all of it without a row."""
        row = self.costs.find(name, subject)
        return 1.0 if row is None else row.typical

    def life_months(self) -> Default | None:
        row = self.costs.find("it_life_years")
        return None if row is None else _combined([(row, 12.0)], "months", "years of life")

    def partial_upfront(self) -> Default | None:
        row = self.costs.find("partial_upfront_fraction")
        return None if row is None else _as_stated(row)

    def _prices(self, machine: MachineFacts) -> dict[str, Default | None]:
        """Bottom up from boards and parts; a system sold whole at its own price, which already holds the parts."""
        none = Default(FREE, "USD", (), "in the price of the whole system")
        for name in ("system_all_in_usd", "system_purchase_usd"):
            row = self.costs.find(name, machine.device)
            if row is not None and row.devices and (row.devices == machine.devices or machine.kind == "nvl_rack"):
                share = machine.devices / row.devices
                price = self._at_point([(row, share)], "USD", f"{machine.devices} of {row.devices} devices of a system")
                network = none if name == "system_all_in_usd" else self._network(machine)
                return {"purchase_usd_per_node": price, "network_usd_per_node": network, "storage_usd_per_node": none}
        return {
            "purchase_usd_per_node": self._server_price(machine),
            "network_usd_per_node": self._network(machine),
            "storage_usd_per_node": self._per_server("server_nvme_usd", machine),
        }

    def _server_price(self, machine: MachineFacts) -> Default | None:
        board = self.costs.find("device_purchase_usd", machine.device)
        parts = self.costs.find("server_parts_usd")
        if self.operator.pays_oem_margin:  # buys servers, not boards
            server = self.costs.find("server_purchase_usd", machine.device)
            if server is not None and server.devices == machine.devices and machine.kind in SERVER_KINDS:
                return self._at_point([(server, 1.0)], "USD", "a complete server")
        around = self.costs.find(PARTS_AROUND[machine.kind]) if machine.kind in PARTS_AROUND else None
        if board is not None and around is not None:
            return self._at_point(
                [(board, float(machine.devices)), (around, 1.0)], "USD", "devices plus a machine's parts"
            )
        if board is None or parts is None or machine.kind not in SERVER_KINDS:
            return None
        terms = [(board, float(machine.devices)), (parts, machine.devices / (parts.devices or 1))]
        margin = self.costs.find("server_oem_margin_usd")
        if self.operator.pays_oem_margin and margin is not None:
            terms.append((margin, machine.devices / (margin.devices or 1)))
        return self._at_point(terms, "USD", "devices plus server parts")

    def _network(self, machine: MachineFacts) -> Default | None:
        if machine.kind in DESKTOP_KINDS:
            return Default(FREE, "USD", (), BY_A_DESK)
        if self.operator.network == "small_cluster":
            row = self.costs.find("network_usd_per_node", "small_cluster")
            return None if row is None else self._at_point([(row, machine.devices / (row.devices or 1))], "USD", "")
        row = self.costs.find("network_usd_per_device")
        return None if row is None else self._at_point([(row, float(machine.devices))], "USD", "per device")

    def _per_server(self, name: str, machine: MachineFacts) -> Default | None:
        row = self.costs.find(name)
        if row is None or machine.kind not in SERVER_KINDS:
            return None
        return self._at_point([(row, machine.devices / (row.devices or 1))], "USD", "")

    def _staff(self, machine: MachineFacts, nodes: int) -> Default | None:
        """People per node for a fleet of this size; a large operator's site is large already."""
        if machine.kind in DESKTOP_KINDS:
            return Default(FREE, "FTE per node", (), BY_A_DESK)
        small = self.costs.find("staff_fte_per_node", "small")
        large = self.costs.find("staff_fte_per_1000_devices", "large")
        from_devices = self.costs.find("staff_small_fleet_devices")
        to_devices = self.costs.find("staff_large_fleet_devices")
        if small is None or large is None or from_devices is None or to_devices is None:
            return None
        if self.operator.staff == "large":
            return _combined([(large, machine.devices / 1000.0)], "FTE per node", "a large site")
        devices = machine.devices * nodes

        def per_node(read: Callable[[CostFigureRow], float]) -> float:
            fte = staff_fte(
                devices,
                read(small) / (small.devices or 1),
                from_devices.typical,
                read(large) / 1000.0,
                to_devices.typical,
            )
            return fte / nodes

        figure = Figure(per_node(lambda r: r.low), per_node(lambda r: r.typical), per_node(lambda r: r.high))
        origins = (_origin(small), _origin(large))
        return Default(figure, "FTE per node", origins, f"a fleet of {devices} devices")

    def _plain(self, *names: str) -> dict[str, Default]:
        rows = ((name, self.costs.find(name)) for name in names)
        return {name: _as_stated(row) for name, row in rows if row is not None}

    def _subject(self, name: str, subject: str) -> Default | None:
        row = self.costs.find(name, subject)
        return None if row is None else _as_stated(row)

    def _pointed(self, name: str, what: str) -> Default | None:
        row = self.costs.find(name)
        if row is None:
            return None
        return Default(
            _from_point(_scaled(row, 1.0), self.operator.maintenance_price_point),
            row.unit,
            (_origin(row),),
            f"{what} of this operator class: {self.operator.maintenance_price_point} end",
        )

    def _at_point(self, terms: list[tuple[CostFigureRow, float]], unit: str, how: str) -> Default:
        whole = _combined(terms, unit, how)
        point = self.operator.purchase_price_point
        return Default(_from_point(whole.figure, point), unit, whole.origins, f"{how} ({point} price)".strip())


def defaults_for(costs: CostCatalog, operator: str) -> CostDefaults:
    """Raises CostInputError naming the operator classes there are."""
    row = costs.operators.get(operator)
    if row is None:
        raise CostInputError("operator", f"unknown {operator!r}; there are {', '.join(sorted(costs.operators))}")
    return CostDefaults(costs, row)


def figures(defaults: Mapping[str, Default]) -> dict[str, Figure]:
    return {name: default.figure for name, default in defaults.items()}


def _origin(row: CostFigureRow) -> Origin:
    return Origin(row.source, row.as_of, row.checked)


def _energy(row: EnergyRow) -> dict[str, Default]:
    """Tariff and, where the row states it, carbon intensity of a place."""
    # A row without a date of its own is an assumption, of the day it was made.
    as_of = row.as_of or row.provenance.retrieved_on.isoformat()
    origin = Origin(row.provenance.source, as_of, row.provenance.checked)
    typical = float(row.usd_per_kwh)
    low = typical if row.low_usd_per_kwh is None else float(row.low_usd_per_kwh)
    high = typical if row.high_usd_per_kwh is None else float(row.high_usd_per_kwh)
    defaults = {"electricity_usd_per_kwh": Default(Figure(low, typical, high), "USD per kWh", (origin,), row.name)}
    if row.grid_kg_co2e_per_kwh is not None:
        carbon = row.grid_kg_co2e_per_kwh
        defaults["grid_kg_co2e_per_kwh"] = Default(
            Figure(carbon, carbon, carbon), "kg CO2e per kWh", (origin,), row.name
        )
    return defaults


def _scaled(row: CostFigureRow, factor: float) -> Figure:
    return Figure(row.low * factor, row.typical * factor, row.high * factor)


def _as_stated(row: CostFigureRow) -> Default:
    return Default(_scaled(row, 1.0), row.unit, (_origin(row),))


def _combined(terms: list[tuple[CostFigureRow, float]], unit: str, how: str) -> Default:
    """Σ factor · row, end by end."""
    parts = [_scaled(row, factor) for row, factor in terms]
    figure = Figure(sum(p.low for p in parts), sum(p.typical for p in parts), sum(p.high for p in parts))
    return Default(figure, unit, tuple(_origin(row) for row, _ in terms), how)


def _from_point(figure: Figure, point: PricePoint) -> Figure:
    """The range as seen by a buyer who usually pays its low (or high) end: that end becomes the typical value, and the range
    reaches as far beyond it, in proportion, as back to what others pay."""
    if point == "low":
        beyond = 0.0 if figure.typical == 0 else figure.low * figure.low / figure.typical
        return Figure(beyond, figure.low, figure.typical)
    if point == "high":
        beyond = figure.high if figure.typical == 0 else figure.high * figure.high / figure.typical
        return Figure(figure.typical, figure.high, beyond)
    return figure
