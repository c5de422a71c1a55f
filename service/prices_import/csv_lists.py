"""Price lists in CSV: SkyPilot catalogs, gpuhunt catalogs, and one's own."""

import csv
import io
from collections.abc import Iterable, Iterator

from service.prices_import.quote import Quote, quoted_price, unreadable

OWN_COLUMNS = frozenset(("provider", "instance", "region", "commitment", "usd_per_hour"))
OWN_OFFER_COLUMNS = frozenset(("offer", "usd_per_hour"))
SKYPILOT_COLUMNS = frozenset(("InstanceType", "Region", "Price"))
GPUHUNT_COLUMNS = frozenset(("instance_name", "location", "price", "spot"))
GPUHUNT_PROVIDERS = {"lambdalabs": "lambda", "datacrunch": "verda", "vastai": "vast"}
"""Names that differ from those of this catalog's offers; DataCrunch became Verda in 2025."""
COMMITMENTS = frozenset(
    (
        "on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront",
        "capacity_block", "purchase",
    )
)  # fmt: skip
PARTS_OF_AN_OFFER = 4
MOST_ROWS = 200_000
MOST_COLUMNS = 200


def columns_of(text: str) -> frozenset[str]:
    """The header's names."""
    header = next(csv.reader(io.StringIO(text)), [])
    if len(header) > MOST_COLUMNS:
        raise unreadable(f"has {len(header)} columns; the most is {MOST_COLUMNS}")
    return frozenset(header)


def rows_of(text: str, needed: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and row. Raises where a needed column is missing."""
    reader = csv.DictReader(io.StringIO(text))
    missing = sorted(set(needed) - set(reader.fieldnames or ()))
    if missing:
        raise unreadable(f"the list has no column {', '.join(missing)}")
    for number, row in enumerate(reader):
        if number >= MOST_ROWS:
            raise unreadable(f"has more than {MOST_ROWS} rows; send it in parts")
        yield reader.line_num, {name: value or "" for name, value in row.items() if name is not None}


def read_skypilot(text: str, provider: str) -> list[Quote]:
    """Columns InstanceType, Region, Price, SpotPrice; one row per zone.

    Rows without an instance type are accelerators billed apart from their host and have no price of a node.
    """
    quotes = []
    for _, row in rows_of(text, SKYPILOT_COLUMNS):
        for commitment, column in (("on_demand", "Price"), ("spot", "SpotPrice")):
            price = quoted_price(row.get(column, ""))
            if row["InstanceType"] and price is not None:
                quotes.append(Quote(provider, row["InstanceType"], row["Region"], commitment, price))
    return quotes


def read_gpuhunt(text: str, provider: str) -> list[Quote]:
    """Columns instance_name, location, price, spot, as in the catalogs the package downloads: one file per provider."""
    quotes = []
    for _, row in rows_of(text, GPUHUNT_COLUMNS):
        price = quoted_price(row["price"])
        if row["instance_name"] and price is not None:
            commitment = "spot" if row["spot"].strip().lower() == "true" else "on_demand"
            owner = row.get("provider") or provider
            known = GPUHUNT_PROVIDERS.get(owner, owner)
            quotes.append(Quote(known, row["instance_name"], row["location"], commitment, price))
    return quotes


def read_own(text: str) -> list[Quote]:
    """Columns offer, usd_per_hour; or provider, instance, region, commitment, usd_per_hour.

    One's own list must be right: a line without a price or with an unknown commitment is refused by its number.
    """
    by_offer = "offer" in columns_of(text)
    quotes = []
    for line, row in rows_of(text, OWN_OFFER_COLUMNS if by_offer else OWN_COLUMNS):
        parts = (
            row["offer"].split(":") if by_offer else [row[n] for n in ("provider", "instance", "region", "commitment")]
        )
        price = quoted_price(row["usd_per_hour"])
        if len(parts) != PARTS_OF_AN_OFFER or parts[-1] not in COMMITMENTS:
            raise unreadable(f"line {line}: not provider, instance, region and a known commitment")
        if price is None:
            raise unreadable(f"line {line}: {row['usd_per_hour'][:40]!r} is not a price above zero")
        provider, instance, region, commitment = parts
        quotes.append(Quote(provider, instance, region, commitment, price))
    return quotes
