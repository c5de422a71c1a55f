"""Terms of a lease and of machines that are there already → the cost model's, with where every figure comes from."""

from dataclasses import replace
from decimal import Decimal

from service.problems import FieldError, InvalidFieldsError
from service.tco.defaults import CostDefaults, Default, Origin
from service.tco.ownership import LIFE, PRICE, PurchaseTerms
from service.wire.tco import AlternativeIn, LeaseTermsIn
from solver.tco.alternatives import HeldMachines, Lease
from solver.tco.capital import residual_fraction_at, residual_fraction_towards
from solver.tco.figures import Figure, exactly
from solver.tco.leasing import lease_rate_usd_per_month

RATE = "lease_usd_per_node_month"
BUYOUT = "buyout_usd_per_node"
IMPLICIT = "lease_implicit_fraction_per_year"
PAID = "held_usd_per_node"


def lease_terms(
    asked: AlternativeIn, position: int, terms: PurchaseTerms, defaults: CostDefaults
) -> tuple[Lease | None, PurchaseTerms]:
    """The lease of an alternative that has one, and the terms of its machines under it. A rate that is not stated is the one
    that gives the lessor its implicit rate. Raises InvalidFieldsError."""
    if asked.lease is None:
        return None, terms
    own, pointer = asked.lease, f"/alternatives/{position}/lease"
    if terms.finance_months is not None:
        detail = "a lease is paid by its rates: leave finance_rate_percent and finance_months out"
        raise InvalidFieldsError([FieldError(detail, pointer=pointer)])
    lease = Lease(own.term_months, own.buyout_usd_per_node is not None, asked.payment_timing == "in_advance")
    life = terms.life_months
    if not lease.bought_out:
        if asked.purchase.depreciation_months not in (None, own.term_months):
            detail = "machines that go back last for the lease; state buyout_usd_per_node to keep them longer"
            raise InvalidFieldsError([FieldError(detail, pointer=f"/alternatives/{position}/purchase/{LIFE}")])
        life = own.term_months
    elif life < own.term_months:
        detail = f"machines last {life} months (purchase.depreciation_months): shorter than the lease"
        raise InvalidFieldsError([FieldError(detail, pointer=f"{pointer}/term_months")])
    figures = dict(terms.figures)
    found = {name: default for name, default in terms.defaults.items() if lease.bought_out or name != LIFE}
    notes = [*terms.notes, _ending(own)]
    if own.buyout_usd_per_node is not None:
        figures[BUYOUT] = exactly(float(own.buyout_usd_per_node))
    if own.usd_per_node_month is not None:
        figures[RATE] = exactly(float(own.usd_per_node_month))
    else:
        rate = _rate(own, replace(terms, life_months=life), defaults, pointer)
        found[RATE] = rate
        figures[RATE] = rate.figure
        notes.append(
            f"no monthly rate is stated: {rate.figure.typical:,.2f} USD a node is {rate.how}; a lessor's quote is better"
        )
    if figures["network_usd_per_node"].typical or figures["storage_usd_per_node"].typical:
        notes.append("network and storage are bought beside the lease; state them as 0 where the rate covers them")
    return lease, replace(terms, figures=figures, life_months=life, defaults=found, notes=tuple(notes))


def _ending(own: LeaseTermsIn) -> str:
    if own.buyout_usd_per_node is None:
        return f"the lease cannot be cancelled; after {own.term_months} months machines go back and the next are leased"
    return (
        f"the lease cannot be cancelled; after {own.term_months} months machines are bought at "
        f"{own.buyout_usd_per_node:,.2f} USD each and kept to the end of their life"
    )


def _rate(own: LeaseTermsIn, terms: PurchaseTerms, defaults: CostDefaults, pointer: str) -> Default:
    """The level monthly rate at each end of the lessor's implicit rate and of the machine's price."""
    row = defaults.plain(IMPLICIT)
    origins: tuple[Origin, ...] = ()
    if own.implicit_rate_percent is not None:
        yearly = exactly(own.implicit_rate_percent / 100.0)
    elif row is not None:
        yearly, origins = row.figure, row.origins
    else:
        detail = "figure_missing: no lessor's rate in the catalog; state usd_per_node_month"
        raise InvalidFieldsError([FieldError(detail, pointer=f"{pointer}/usd_per_node_month")])
    price = terms.figures[PRICE]

    def at(usd: float, fraction: float) -> float:
        left = (
            usd * _fetched(terms, own.term_months)
            if own.buyout_usd_per_node is None
            else float(own.buyout_usd_per_node)
        )
        return float(lease_rate_usd_per_month(usd, min(left, usd), fraction, own.term_months))

    figure = Figure(at(price.low, yearly.low), at(price.typical, yearly.typical), at(price.high, yearly.high))
    priced = terms.defaults.get(PRICE)
    left = "what they fetch then" if own.buyout_usd_per_node is None else "the buyout"
    how = (
        f"the level rate over {own.term_months} months that gives a lessor {yearly.typical:.1%} a year on the machine's "
        f"price, less {left}"
    )
    return Default(figure, "USD per node and month", (*origins, *(() if priced is None else priced.origins)), how)


def _fetched(terms: PurchaseTerms, age_months: int) -> float:
    """Share of the price that a lessor typically gets for machines of that age."""
    if "residual_fraction" in terms.figures:
        stated = terms.figures["residual_fraction"].typical
        return float(residual_fraction_towards(age_months, stated, terms.life_months))
    after_3, after_5 = (terms.figures[f"residual_fraction_after_{years}_years"].typical for years in (3, 5))
    return float(residual_fraction_at(age_months, after_3, after_5))


def held_terms(
    asked: AlternativeIn, position: int, nodes: int, terms: PurchaseTerms
) -> tuple[HeldMachines | None, PurchaseTerms, Decimal | None]:
    """Machines of an alternative that are there already, its terms with what was paid for them, and the sum, which is sunk.

    Raises InvalidFieldsError for more of them than there are, or older than machines become.
    """
    own = asked.owned
    if own is None:
        return None, terms, None
    pointer = f"/alternatives/{position}/owned"
    count = nodes if own.nodes is None else own.nodes
    if count > nodes:
        raise InvalidFieldsError([FieldError(f"{asked.name!r} has {nodes} of them", pointer=f"{pointer}/nodes")])
    if own.age_months >= terms.life_months:
        detail = f"machines last {terms.life_months} months (purchase.depreciation_months): these would be gone"
        raise InvalidFieldsError([FieldError(detail, pointer=f"{pointer}/age_months")])
    paid = terms.figures[PRICE] if own.usd_paid_per_node is None else exactly(float(own.usd_paid_per_node))
    sunk = Decimal(repr(paid.typical * count)).quantize(Decimal("0.01"))
    fetched = paid.typical * count * _fetched(terms, own.age_months)
    note = (
        f"{count} nodes are there already, {own.age_months} months old: the {sunk:,.2f} USD paid for them is sunk and in no "
        f"line; keeping them gives up the {fetched:,.2f} USD they would fetch now (foregone_sale)"
    )
    if own.usd_paid_per_node is None:
        note += "; what was paid is not stated: the price of a new one is taken"
    assumed = own.usd_paid_per_node is None and PRICE in terms.defaults
    defaults = terms.defaults | ({PAID: terms.defaults[PRICE]} if assumed else {})
    found = replace(terms, figures={**terms.figures, PAID: paid}, defaults=defaults, notes=(*terms.notes, note))
    return HeldMachines(count, own.age_months), found, sunk
