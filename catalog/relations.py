"""What must hold between rows of different kinds."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from catalog.benchmark_rows import BenchmarkFile
from catalog.rows import (
    ConstantRow,
    DeviceLineRow,
    DeviceRow,
    LlmRow,
    NodeRow,
    OfferRow,
    PartitionRow,
    PriceRow,
    ProviderRow,
)


def relation_errors(
    devices: Mapping[str, DeviceRow],
    nodes: Mapping[str, NodeRow],
    offers: Mapping[str, OfferRow],
    prices: Sequence[PriceRow],
    constants: Sequence[ConstantRow],
    llms: Mapping[str, LlmRow],
) -> Iterator[str]:
    """Every broken relation, as a sentence."""
    for device in devices.values():
        yield from _device_errors(device)
    for node in nodes.values():
        yield from _node_errors(node, devices)
    for offer in offers.values():
        if offer.node not in nodes:
            yield f"offer {offer.id}: unknown node {offer.node!r}"
    yield from _price_errors(offers, prices)
    yield from _constant_errors(devices, constants, llms)


def benchmark_errors(
    devices: Mapping[str, DeviceRow], llms: Mapping[str, LlmRow], files: Sequence[BenchmarkFile]
) -> Iterator[str]:
    """Measured runs on devices or models the catalog does not hold."""
    for file in files:
        for run in file.runs:
            context = run.benchmark.get("context", {})
            for field, known in (("device", devices), ("llm", llms)):
                if context.get(field) not in known:
                    yield f"benchmark {run.id}: unknown {field} {context.get(field)!r}"


def partition_errors(devices: Mapping[str, DeviceRow], partitions: Sequence[PartitionRow]) -> Iterator[str]:
    """Profiles of unknown devices, profiles stated twice, and instances that together are more than their device."""
    known: set[tuple[str, str]] = set()
    whole: dict[str, tuple[int, int]] = {}
    for row in partitions:
        who = f"partition {row.profile} of {row.device}"
        device = devices.get(row.device)
        if device is None:
            yield f"{who}: unknown device"
            continue
        if (row.device, row.profile) in known:
            yield f"{who} appears twice"
        known.add((row.device, row.profile))
        sizes = (row.device_multiprocessors, row.device_slices)
        if whole.setdefault(row.device, sizes) != sizes:
            yield f"{who}: a device of {sizes} multiprocessors and memory slices, elsewhere of {whole[row.device]}"
        for field, size in zip(("multiprocessors", "slices"), sizes, strict=True):
            if getattr(row, field) * row.instances > size:
                yield f"{who}: {row.instances} instances of {getattr(row, field)} {field} exceed the device's {size}"
        if device.memory_gib is not None and row.memory_gib * row.instances > device.memory_gib:
            yield f"{who}: {row.instances} instances of {row.memory_gib} GiB exceed the device's {device.memory_gib}"


def line_errors(devices: Mapping[str, DeviceRow], lines: Collection[DeviceLineRow]) -> Iterator[str]:
    """Devices in no product line or in several, lines of unknown devices or of another vendor's."""
    held = Counter(device for line in lines for device in line.devices)
    for line in lines:
        for name in line.devices:
            if name not in devices:
                yield f"line {line.id}: unknown device {name!r}"
            elif devices[name].vendor != line.vendor:
                yield f"line {line.id}: {name} is made by {devices[name].vendor}, the line by {line.vendor}"
    for name in devices:
        if held[name] != 1:
            yield f"device {name}: in {held[name]} product lines; expected one (device_lines)"


def provider_errors(offers: Mapping[str, OfferRow], providers: Mapping[str, ProviderRow]) -> Iterator[str]:
    """Offers of unknown providers, and regions of which nobody says whether they name a place."""
    for provider in providers.values():
        for region in sorted(set(provider.no_place) & provider.places.keys()):
            yield f"provider {provider.id}: {region!r} both names a place and names none"
    for name, region in sorted({(offer.provider, offer.region) for offer in offers.values()}):
        row = providers.get(name)
        if row is None:
            yield f"offers in {region!r}: unknown provider {name!r}"
        elif region not in row.places and region not in row.no_place:
            yield f"provider {name}: {region!r} is in neither places nor no_place"


def _device_errors(device: DeviceRow) -> Iterator[str]:
    for field in device.missing:
        if field not in DeviceRow.model_fields:
            yield f"device {device.id}: missing names an unknown field {field!r}"
        elif getattr(device, field) is not None:
            yield f"device {device.id}: {field} is listed as missing but has a value"
    if device.memory_gib is None and "memory_gib" not in device.missing:
        yield f"device {device.id}: no memory_gib, and not listed as missing"
    if device.memory_bandwidth_gb_per_s is None and "memory_bandwidth_gb_per_s" not in device.missing:
        yield f"device {device.id}: no memory_bandwidth_gb_per_s, and not listed as missing"


def _node_errors(node: NodeRow, devices: Mapping[str, DeviceRow]) -> Iterator[str]:
    if node.device not in devices:
        yield f"node {node.id}: unknown device {node.device!r}"
        return
    if node.link_domain_devices > node.devices:
        yield f"node {node.id}: a link domain of {node.link_domain_devices} among {node.devices} devices"
    domain = devices[node.device].link_domain_devices
    if node.link_domain_devices > domain and "link_domain_devices" not in node.provenance.exceptions:
        yield f"node {node.id}: a link domain of {node.link_domain_devices}; {node.device} joins {domain} at most"
    if node.rack_domain_devices and node.rack_domain_devices < node.devices:
        yield f"node {node.id}: a rack domain of {node.rack_domain_devices} is smaller than its {node.devices} devices"
    if node.rack_domain_devices > domain and "rack_domain_devices" not in node.provenance.exceptions:
        yield f"node {node.id}: a rack domain of {node.rack_domain_devices}; {node.device} joins {domain} at most"


def _price_errors(offers: Mapping[str, OfferRow], prices: Sequence[PriceRow]) -> Iterator[str]:
    steps = Counter((price.offer, price.valid_from) for price in prices)
    for (offer, valid_from), count in steps.items():
        if offer not in offers:
            yield f"price of {valid_from}: unknown offer {offer!r}"
        if count > 1:
            yield f"offer {offer}: {count} price steps on {valid_from}"
    priced = {offer for offer, _ in steps}
    for offer in offers:
        if offer not in priced:
            yield f"offer {offer}: no price"


def _constant_errors(
    devices: Mapping[str, DeviceRow], constants: Sequence[ConstantRow], llms: Mapping[str, LlmRow]
) -> Iterator[str]:
    families = {device.family for device in devices.values()}
    seen: set[str] = set()
    for constant in constants:
        of = f", {constant.of_llms}" if constant.llms else ""
        who = f"constant {constant.name} ({constant.family}, {constant.device}, {constant.engine}{of})"
        if who in seen:
            yield f"{who}: stated twice"
        seen.add(who)
        if constant.family != "*" and constant.family not in families:
            yield f"{who}: unknown family"
        if constant.device != "*" and constant.device not in devices:
            yield f"{who}: unknown device"
        yield from (f"{who}: unknown llm {llm!r}" for llm in constant.llms if llm not in llms)
        if not constant.low <= constant.value <= constant.high:
            yield f"{who}: {constant.value} is outside its range {constant.low} to {constant.high}"
