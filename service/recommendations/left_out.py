"""What the catalog does not know about a request's choices, so that no proof seems to cover it."""

from collections import Counter

from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.limits import allowed_offers
from service.wire.plan_explained import LeftOutOut
from service.wire.recommendations import LimitsIn

MOST_NAMES = 20


def left_out(snapshot: CatalogSnapshot, limits: LimitsIn) -> list[LeftOutOut]:
    """Machines without a price for a commitment that was asked for, and devices without a figure, by name and count."""
    found = []
    anyhow = allowed_offers(snapshot.offers, limits.model_copy(update={"commitments": None}))
    sold = {(o.provider, o.node.id, o.node.device.id) for o in anyhow}
    for commitment in limits.commitments or ():
        priced = {(o.provider, o.node.id, o.node.device.id) for o in anyhow if o.commitment == commitment}
        missing = sorted(sold - priced)
        if missing and commitment != "on_demand":
            devices = Counter(device for _, _, device in missing)
            found.append(
                LeftOutOut(
                    reason="price_missing",
                    what=commitment,
                    count=len(missing),
                    names=[f"{provider} {node}" for provider, node, _ in missing[:MOST_NAMES]],
                    devices=dict(sorted(devices.items())),
                )
            )
    asked = set(limits.devices) if limits.devices is not None else None
    refused = {d: figure for d, figure in snapshot.refused.items() if asked is None or d in asked}
    for figure, count in sorted(Counter(refused.values()).items()):
        names = sorted(device for device, missing_figure in refused.items() if missing_figure == figure)
        found.append(
            LeftOutOut(
                reason="figure_missing",
                what=figure,
                count=count,
                names=names[:MOST_NAMES],
                devices=dict.fromkeys(names, 1),
            )
        )
    return found
