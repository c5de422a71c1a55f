"""Formulas of machines that are one's own, bought, leased or there already, by month."""

from service.tco.workbook_cells import HOURS, OUTLAYS, MonthSheet, added

DECLINING = 2.0
"""Of declining balance: twice the straight-line charge, of what is left."""
BILLS = ("power", "cooling", "demand_charge", "space", "maintenance", "support", "staff", "software", "insurance")


class OwnedSheet(MonthSheet):
    market = "hardware"

    def helping(self) -> list[str]:
        leased = ["lease_rate", "machines", "buyout_price", "beside", "beside_resold"]
        return [
            *(f"{line}_outlay" for line in OUTLAYS),
            *(leased if self.used.lease_months else []),
            "installed",
            "resold",
            "resale",
            "used_life",
            "unused_life",
            "written_off",
            "loan_balance",
        ]

    def line_names(self) -> list[str]:
        return [
            *OUTLAYS, "lease", "unexpired_commitment", "buyout", "foregone_sale", "finance", *BILLS, "decommissioning",
            "tax", "tax_shield", "residual",
        ]  # fmt: skip

    def written_off(self, month: int) -> str | None:
        return self.at("written_off", month)

    def _ordered(self, started: int) -> int:
        return max(0, started - (self.used.lead_time_months or 0))

    def _each(self, line: str, started: int) -> str:
        """What one node that starts in a month costs on a line, at the price of the month it is ordered in."""
        price = f"{self.of('purchase_usd_per_node')}*{self.at('price_factor', self._ordered(started))}"
        return {
            "purchase": price,
            "network": self.of("network_usd_per_node"),
            "storage": self.of("storage_usd_per_node"),
            "spares": f"{price}*{self.of('spare_fraction')}",
        }[line]

    def line(self, name: str, month: int) -> str | None:
        if name.endswith("_outlay"):
            return self._outlay(name.removesuffix("_outlay"), month)
        if name in BILLS:
            return None if month == 0 else self._bill(name, month)
        if name in (*OUTLAYS, "finance"):
            return self._paid(name, month)
        formulas = {
            "written_off": self._charged, "loan_balance": self._balance, "decommissioning": self._taken_out,
            "residual": self._sold, "lease": self._rates, "unexpired_commitment": self._owed, "buyout": self._bought_out,
            "foregone_sale": self._foregone,
        }  # fmt: skip
        return formulas[name](month) if name in formulas else self._of_batch(name, month)

    def _life(self) -> int:
        return self.used.life_months or 1

    def _outlay(self, line: str, month: int) -> str | None:
        if line == "purchase" and self.used.lease_months:
            return None
        starts = self.used.started_by_month
        return added(
            f"{self.at('started', s)}*{self._each(line, s)}"
            for s in range(self.months)
            if self._ordered(s) == month and (starts[s] or s == month)
        )

    def _of_batch(self, name: str, month: int) -> str | None:
        """Helping columns: of what starts in a row's month."""
        if month == self.months:
            return None
        life, started = self._life(), self.at("started", month)
        if name in ("used_life", "unused_life"):
            used = min(life, self.months - month)
            return f"{used if name == 'used_life' else life - used}/{life}"
        if name == "resale":
            return self._resale(min(life, self.months - month))
        if name == "lease_rate":
            return f"{self.of('lease_usd_per_node_month')}*{self.at('price_factor', self._ordered(month))}"
        if name == "buyout_price":
            price = f"{self.of('buyout_usd_per_node')}*{self.at('price_factor', self._ordered(month))}"
            return f"{started}*{price}" if self._kept(month) else None
        own = ("purchase", "spares") if not self.used.lease_months or self._kept(month) else ("spares",)
        lines = {
            "installed": OUTLAYS,
            "resold": own,
            "machines": ("purchase",),
            "beside": ("network", "storage", "spares"),
            "beside_resold": ("spares",),
        }[name]
        return f"{started}*({'+'.join(self._each(line, month) for line in lines)})"

    def _kept(self, started: int) -> bool:
        """Whether machines leased in a month are bought out before the horizon ends."""
        return self.used.bought_out and started + (self.used.lease_months or 0) <= self.months

    def _sold(self, month: int) -> str | None:
        """Machines at the end of their life, and at the horizon whatever is left."""
        life, first = self._life(), max(0, month - self._life())
        terms = []
        if month == self.months:
            terms.append(
                f"-SUMPRODUCT({self.span('resold', first, month - 1)},{self.span('resale', first, month - 1)})"
            )
        elif month >= life:
            terms.append(f"-{self.at('resold', first)}*{self.at('resale', first)}")
        if month == self._held_until():
            terms.append(f"-{self._held_worth(month)}")
        return "".join(terms) or None

    def _taken_out(self, month: int) -> str | None:
        life, first = self._life(), max(0, month - self._life())
        each = f"{self.of('decommissioning_usd_per_node')}*{self.at('inflation_factor', month - 1)}"
        nodes = []
        if month == self.months:
            nodes.append(f"SUM({self.span('started', first, month - 1)})")
        elif month and month >= life:
            nodes.append(self.at("started", first))
        if month and month == self._held_until():
            nodes.append(str(self.used.held_nodes))
        return f"({'+'.join(nodes)})*{each}" if nodes else None

    def _charged(self, month: int) -> str | None:
        """Depreciation, and what book value differs from what machines fetch when they are sold early."""
        parts = [self._held_charged(month), self._buyouts_charged(month)]
        if month:
            new = ("beside", "beside_resold") if self.used.lease_months else ("installed", "resold")
            charged = self._declining if self.accelerated else self._new_charged
            parts.insert(0, charged(month, *new))
        return added(part for part in parts if part is not None)

    def _declining(self, month: int, installed_in: str, resold_in: str) -> str | None:
        """Batch by batch: a share of what is left, down to what machines fetch at the end of their life."""
        life, terms = self._life(), []
        for s in (s for s, nodes in enumerate(self.used.started_by_month) if nodes):
            cost, resold, sold = self.at(installed_in, s), self.at(resold_in, s), min(s + life, self.months)
            left = f"{resold}*{self._resale(life)}"
            if s < month <= sold:
                terms.append(f"{self._book(cost, left, month - 1 - s)}-{self._book(cost, left, month - s)}")
            if month == sold:
                terms.append(f"{self._book(cost, left, sold - s)}-{resold}*{self._resale(sold - s)}")
        return added(terms)

    def _book(self, cost: str, left: str, age: int) -> str:
        life = self._life()
        if age == 0:
            return cost
        if self.accelerated:
            return f"MAX({left},{cost}*(1-{min(1.0, DECLINING / life)!r})^{age})"
        return f"({cost}-({cost}-{left})*{min(age, life)}/{life})"

    def _new_charged(self, month: int, installed_in: str, resold_in: str) -> str:
        life = self._life()
        first, last = max(0, month - life), month - 1
        installed, resold = self.span(installed_in, first, last), self.span(resold_in, first, last)
        at_end = self._resale(life)
        charge = f"(SUM({installed})-{at_end}*SUM({resold}))/{life}"
        if month < self.months:
            return charge
        used, unused, resale = (self.span(name, first, last) for name in ("used_life", "unused_life", "resale"))
        book = f"SUMPRODUCT({installed},{unused})+{at_end}*SUMPRODUCT({resold},{used})"
        return f"{charge}+{book}-SUMPRODUCT({resold},{resale})"

    # lease

    def _rates(self, month: int) -> str | None:
        term = self.used.lease_months
        last = month if self.used.in_advance else month - 1
        if term is None or not 0 <= last < self.months:
            return None
        spans = (self.span(column, max(0, last + 1 - term), last) for column in ("started", "lease_rate"))
        return f"SUMPRODUCT({','.join(spans)})"

    def _owed(self, month: int) -> str | None:
        term = self.used.lease_months
        if term is None or month < self.months:
            return None
        return added(
            f"{self.at('started', s)}*{self.at('lease_rate', s)}*{s + term - self.months}"
            for s in range(self.months)
            if s + term > self.months
        )

    def _bought_out(self, month: int) -> str | None:
        started = month - (self.used.lease_months or 0)
        return self.at("buyout_price", started) if self.used.bought_out and started >= 0 else None

    def _buyouts_charged(self, month: int) -> str | None:
        """Machines bought out, in equal charges over the rest of their life down to what they fetch at its end."""
        term, life = self.used.lease_months or 0, self._life()
        terms = []
        for s in (s for s, nodes in enumerate(self.used.started_by_month) if nodes and self._kept(s)):
            out, sold = s + term, min(s + life, self.months)
            price, new = self.at("buyout_price", s), self.at("machines", s)
            each = f"({price}-MIN({price},{new}*{self._resale(life)}))/{max(1, life - term)}"
            if out < month <= sold:
                terms.append(each)
            if month == sold:
                terms.append(f"{price}-{each}*{sold - out}-{new}*{self._resale(sold - s)}")
        return added(terms)

    # there already

    def _held_until(self) -> int | None:
        age = self.used.held_age_months
        return None if age is None else min(self._life() - age, self.months)

    def _held_worth(self, month: int) -> str:
        age = (self.used.held_age_months or 0) + month
        return f"{self.used.held_nodes}*{self.of('held_usd_per_node')}*{self._resale(age)}"

    def _held_book(self, month: int) -> str:
        paid = f"{self.used.held_nodes}*{self.of('held_usd_per_node')}"
        return self._book(paid, f"{paid}*{self._resale(self._life())}", (self.used.held_age_months or 0) + month)

    def _foregone(self, month: int) -> str | None:
        return self._held_worth(0) if month == 0 and self.used.held_nodes else None

    def _held_charged(self, month: int) -> str | None:
        last = self._held_until()
        if last is None or month > last:
            return None
        if month == 0:
            return f"{self._held_worth(0)}-{self._held_book(0)}"
        charge = f"{self._held_book(month - 1)}-{self._held_book(month)}"
        return charge if month < last else f"{charge}+{self._held_book(last)}-{self._held_worth(last)}"

    # bills, loans, resale

    def _bill(self, name: str, month: int) -> str:
        """What owned machines cost in one month: nodes are those of this row, prices those of the month's start."""
        nodes, inflation = self.at("nodes", month), self.at("inflation_factor", month - 1)
        idle, serving = self.of("idle_power_fraction"), self.of("serving_power_fraction")
        kilowatts = f"{nodes}*{self.of('peak_w_per_node')}/1000"
        energy = f"{kilowatts}*({idle}+({serving}-{idle})*{self.working()})*{HOURS}"
        tariff = f"{self.of('electricity_usd_per_kwh')}*{inflation}"
        effectiveness = self.of("power_usage_effectiveness")
        if name in ("maintenance", "support", "insurance"):
            installed = f"SUM({self.span('installed', max(0, month - self._life()), month - 1)})"
            if month <= self._life() - (self.used.held_age_months or self._life()):
                installed = f"({installed}+{self.used.held_nodes}*{self.of('held_usd_per_node')})"
            return f"{installed}*{self.of(f'{name}_fraction_per_year')}/12"
        return {
            "power": f"{energy}*{tariff}",
            "cooling": f"{energy}*({effectiveness}-1)*{tariff}",
            "demand_charge": f"{kilowatts}*{effectiveness}*{self.of('demand_charge_usd_per_kw_month')}*{inflation}",
            "space": f"{kilowatts}*{self.of('colocation_usd_per_kw_month')}*{inflation}",
            "staff": f"{nodes}*{self.of('staff_fte_per_node')}*{self.of('staff_usd_per_fte_year')}/12*{inflation}",
            "software": f"{nodes}*{self.used.devices_per_node}*{self.of('software_usd_per_device_year')}/12*{inflation}",
        }[name]

    def _balance(self, age: int) -> str | None:
        """Share of a loan still owed after so many payments (the month's number is the loan's age here)."""
        term = self.used.finance_months
        if term is None:
            return None
        paid, rate = min(age, term), f"(1+{self.of('finance_fraction_per_year')})^(1/12)"
        level = f"1-{paid}/{term}"
        return f"IF({rate}=1,{level},1-(({rate})^{paid}-1)/(({rate})^{term}-1))"

    def _paid(self, name: str, month: int) -> str | None:
        if self.used.finance_months is None:
            return None if name == "finance" else self.at(f"{name}_outlay", month)
        lent = sorted({self._ordered(s) for s, nodes in enumerate(self.used.started_by_month) if nodes})
        if name == "finance":
            rate = f"((1+{self.of('finance_fraction_per_year')})^(1/12)-1)"
            return added(
                f"({'+'.join(self.at(f'{line}_outlay', s) for line in OUTLAYS)})"
                f"*{self.at('loan_balance', month - 1 - s)}*{rate}"
                for s in lent
                if s < month
            )
        repaid = [
            f"{self.at(f'{name}_outlay', s)}*({self.at('loan_balance', month - 1 - s)}"
            f"-{self.at('loan_balance', month - s)})"
            for s in lent
            if s < month
        ]
        if month == self.months:
            repaid += [f"{self.at(f'{name}_outlay', s)}*{self.at('loan_balance', month - s)}" for s in lent]
        return added(repaid)

    def _resale(self, age: int) -> str:
        stated, life = self.input("residual_fraction"), self.used.life_months or 1
        if stated is not None:
            return f"(1+({stated}-1)*{min(age, life)}/{life})"
        after_3, after_5 = (self.of(f"residual_fraction_after_{years}_years") for years in (3, 5))
        young = f"1+({after_3}-1)*{min(age, 36)}/36"
        return f"MAX(0,{young}+(MIN({after_5},{after_3})-{after_3})*{max(age - 36, 0)}/24)"
