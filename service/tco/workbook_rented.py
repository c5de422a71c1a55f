"""Formulas of rented nodes and of APIs, by month."""

from service.tco.workbook_cells import HOURS, MonthSheet
from solver.units import SECONDS_PER_HOUR


class ServedSheet(MonthSheet):
    """What others run for us."""

    def grown(self, month: int) -> str:
        """Demand of a month relative to that stated."""
        ramp = self.comparison.request.ramp_months
        rising = f"*{min(1.0, month / ramp)!r}" if ramp else ""
        return f"(1+{self.of('growth_fraction_per_month')})^{month - 1}{rising}"


class RentedSheet(ServedSheet):
    market = "rent"

    def helping(self) -> list[str]:
        return ["contract_price"] if self.used.term_months else []

    def line_names(self) -> list[str]:
        return [
            "rent", "unexpired_commitment", "unused_commitment", "egress", "rented_storage", "tax", "tax_shield",
        ]  # fmt: skip

    def line(self, name: str, month: int) -> str | None:
        if name == "egress":
            sent = f"{self.of('egress_gb_per_month')}*{self.of('egress_usd_per_gb')}"
            return f"{sent}*{self.grown(month)}" if month else None
        if name == "rented_storage":
            return self.of("rented_storage_usd_per_month") if month else None
        if self.used.term_months is None:
            return self._by_the_hour(month) if name == "rent" else None
        if name == "contract_price":
            return f"{HOURS}*{self._hour()}*{self.at('price_factor', month)}"
        if name == "unused_commitment":
            used = self.input("commitment_used_fraction")
            committed = f"({self.at('rent', month)}+{self.at('unexpired_commitment', month)})"
            return None if used is None else f"{committed}*(1/{used}-1)"
        return self._paid(month) if name == "rent" else self._owed(month)

    def _hour(self) -> str:
        hour = self.of("rent_usd_per_node_hour")
        if not self.used.interruptible:
            return hour
        lost = f"{self.of('spot_interruptions_per_node_month')}*{self.of('spot_lost_hours_per_interruption')}"
        lost += f"*{self.used.interrupted_together or 1}"
        return f"{hour}/(1-{lost}/{HOURS})"

    def _by_the_hour(self, month: int) -> str | None:
        """In arrears a row pays for the month that ends there, in advance for the one that begins."""
        billed = month + 1 if self.used.in_advance else month
        if not 1 <= billed <= self.months:
            return None
        return f"{self._node_hours(billed)}*{self._hour()}*{self.at('price_factor', billed - 1)}"

    def _paid(self, month: int) -> str:
        term, upfront = self.used.term_months or 1, self.used.upfront_fraction or 0.0
        terms = [f"{upfront!r}*{term}*{self.at('started', month)}*{self.at('contract_price', month)}"]
        last = month if self.used.in_advance else month - 1
        if 0 <= last < self.months:
            spans = (self.span(column, max(0, last + 1 - term), last) for column in ("started", "contract_price"))
            terms.append(f"{1.0 - upfront!r}*SUMPRODUCT({','.join(spans)})")
        return "+".join(terms)

    def _owed(self, month: int) -> str | None:
        term = self.used.term_months or 1
        if month < self.months:
            return None
        owed = [
            f"{self.at('started', s)}*{self.at('contract_price', s)}*{s + term - self.months}"
            for s in range(self.months)
            if s + term > self.months
        ]
        return f"{1.0 - (self.used.upfront_fraction or 0.0)!r}*({'+'.join(owed)})" if owed else None

    def _node_hours(self, month: int) -> str:
        nodes = self.at("nodes", month)
        if self.used.busy_fraction is not None:
            return f"{nodes}*{self.working()}*{HOURS}"
        profile = self.comparison.request.hourly_profile
        if not self.used.follows_demand or profile is None:
            return f"{nodes}*{HOURS}"
        hours = "+".join(f"ROUNDUP({nodes}*{share!r}-0.000000001,0)" for share in profile if share > 0)
        return f"{HOURS}/{len(profile)}*({hours or '0'})"


class ApiSheet(ServedSheet):
    market = "api"

    def helping(self) -> list[str]:
        return []

    def line_names(self) -> list[str]:
        return ["api_input", "api_cached", "api_output", "tax", "tax_shield"]

    def line(self, name: str, month: int) -> str | None:
        if month == 0:
            return None
        demand = self.comparison.demand
        kind = name.removeprefix("api_")
        share = {"input": 1.0 - demand.cached_fraction, "cached": demand.cached_fraction, "output": 1.0}[kind]
        tokens = demand.output_tokens if kind == "output" else demand.input_tokens
        seconds = f"{demand.requests_per_s!r}*{self.of('utilisation_fraction')}*{HOURS}*{SECONDS_PER_HOUR:g}"
        price = f"{self.of(f'api_usd_per_million_{kind}_tokens')}*{self.at('price_factor', month - 1)}"
        return f"{seconds}*{tokens!r}*{share!r}*{self.grown(month)}/1000000*{price}"
