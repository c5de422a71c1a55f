"""What engines document of devices: whether they run there, what they load, how they divide a model, whether they draft."""

from solver.adapted_products import check_adapters
from solver.engine.profiles import (
    LARGER_HOST_CACHES,
    SCANS_WITH_FLASHINFER,
    TIERING_SINCE,
    drafts,
    engine_profile,
    launched_drafts,
)
from solver.engine.releases import release
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Device
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.weights import weight_format
from solver.precision import Precision
from solver.step.constants import Constants
from solver.units import gib_from_bytes
from solver.workload import EngineSettings


def drafts_on(device: Device, engine: str, pipeline_parallel: int) -> bool:
    """Whether drafting is documented for the engine, and where its features on the device have been read, there too."""
    loads = device.loads.get(engine)
    left_out = loads is not None and loads.features is not None and "drafting" not in loads.features
    return drafts(engine, device.vendor, pipeline_parallel) and not left_out


def check_host_cache(engine: str, host_cache_bytes: float, kv_cache_bytes: float) -> None:
    """Raises UnsupportedError for a tier of host memory that the engine does not start with beside so large a cache of the device."""
    if engine in LARGER_HOST_CACHES and 0.0 < host_cache_bytes <= kv_cache_bytes:
        raise UnsupportedError(
            "host_cache_below_device",
            f"{engine} starts only with more host memory for its cache than the device has ({gib_from_bytes(kv_cache_bytes):.4g} GiB)",
        )


def check_disk_cache(engine: str, version: str | None, disk_cache_bytes: float) -> None:
    """Raises UnsupportedError for a tier of disk under a stated release that is known to have none. A release that is not stated is one
    of today."""
    numbers, since = release(version or ""), TIERING_SINCE.get(engine, ())
    if disk_cache_bytes and numbers and numbers < since:
        first = ".".join(map(str, since))
        raise UnsupportedError(
            "disk_cache_not_in_release", f"{engine} keeps its cache on disks from {first} on, not in {version}"
        )


def check_draft_model_captured(engine: str, version: str | None) -> None:
    """Raises FigureMissingError for a stated release that launches draft models from the host, kernel by kernel: how long that takes
    depends on a host which nobody measured."""
    launched = launched_drafts(engine)
    if launched is None or version is None or not release(version):
        return
    if release(version)[: len(launched.up_to)] <= launched.up_to:
        raise FigureMissingError(
            f"{engine} {version}",
            f"launching draft models, which it runs outside captured graphs ({launched.seen}); state a later version, or a drafting head",
        )


def draft_model_caution(engine: str) -> str | None:
    """What is to be known of predictions with a draft model under an engine."""
    launched = launched_drafts(engine)
    if launched is None:
        return None
    last = ".".join(map(str, launched.up_to))
    return (
        f"{engine} up to {last} runs draft models outside captured graphs, and is slower with one than without: {launched.seen}. "
        f"No later release has been measured with a draft model ({launched.source})"
    )


def runs_only(device: Device, engines: tuple[str, ...]) -> str:
    """Why a device is not planned with any of these engines."""
    if not engines or not device.engines:
        return "no serving engine is known to run on it"
    return f"{' and '.join(engines)} {'is' if len(engines) == 1 else 'are'} not known to run on it; {', '.join(device.engines)} would"


def check_formats_documented(device: Device, engine: str, precision: Precision) -> None:
    """Raises UnsupportedError where the engine's documentation says what it loads on the device, and leaves a format out, or
    where only another engine widens weights that the device has no unit for."""
    loads = device.loads.get(engine)
    widens = loads is not None and precision.weights in loads.widened
    has_unit = any(dtype in device.flop_per_s for dtype in weight_format(precision.weights).compute)
    if precision.weights in device.widened and not (widens or has_unit):
        raise UnsupportedError(
            "precision_not_on_device",
            f"{device.id} has no matrix unit for {precision.weights} weights, and {engine} does not widen them",
        )
    if loads is None:
        return
    for what, asked, known in (
        ("weights", precision.weights, loads.weights),
        ("a KV cache", precision.kv_cache, loads.kv_cache),
    ):
        if asked not in known:
            raise UnsupportedError(
                "format_not_in_engine",
                f"{engine} documents no {what} of {asked} on {device.id}; it takes {', '.join(known)} there",
            )


def check_options(settings: EngineSettings) -> None:
    """Raises UnsupportedError for an unknown engine, and for an option that it cannot be told: to let requests wait for some decode
    steps, to answer from several processes, up to how many tokens it captures, or whose kernels scan prompts."""
    profile = engine_profile(settings.name)
    own = profile.name == settings.name  # of engines that are scheduled like another, its options are not known
    if settings.admission_interval_steps > 1 and not (own and profile.admits_in_intervals):
        raise UnsupportedError(
            "option_not_in_engine",
            f"{settings.name} takes new requests in at every step; admission_interval_steps is an option of SGLang",
        )
    if settings.api_servers > 1 and not (own and profile.many_api_servers):
        raise UnsupportedError(
            "option_not_in_engine",
            f"how {settings.name} would answer from several processes is not known here; api_servers is an option of vLLM",
        )
    if settings.max_captured_tokens is not None and not (own and profile.captures_as_told):
        raise UnsupportedError(
            "option_not_in_engine",
            f"what {settings.name} captures is as it chooses here; max_captured_tokens is an option of vLLM",
        )
    if settings.scan_kernel is not None and settings.name not in SCANS_WITH_FLASHINFER:
        raise UnsupportedError(
            "option_not_in_engine",
            f"whose kernels {settings.name} scans prompts with is not told here; scan_kernel is an option of vLLM",
        )


def undocumented_division(device: Device, engine: str, layout: Layout) -> str | None:
    """The first way of dividing a model in a layout that the engine's documentation leaves out on the device; None where it leaves
    none out, or has not been read."""
    loads = device.loads.get(engine)
    if loads is None or loads.parallelism is None:
        return None
    degrees = {
        "tensor": layout.tensor_parallel,
        "pipeline": layout.pipeline_parallel,
        "data": layout.data_parallel,
        "expert": layout.expert_parallel,
    }
    return next((way for way, degree in degrees.items() if degree > 1 and way not in loads.parallelism), None)


def check_layout_documented(device: Device, engine: str, layout: Layout) -> None:
    """Raises UnsupportedError where the engine's documentation leaves out a way in which the layout divides the model."""
    way = undocumented_division(device, engine, layout)
    if way is not None:
        known = ", ".join(device.loads[engine].parallelism or ())
        raise UnsupportedError(
            "layout_not_in_engine",
            f"{engine} documents no {way} parallelism on {device.id}; it divides a model by {known} parallelism",
        )


def check_engine_available(device: Device, engine: str) -> None:
    """Raises UnsupportedError where the catalog does not know the engine to run on the device."""
    if engine not in (*device.engines, *device.past_engines):
        known = f"known there: {', '.join(device.engines)}" if device.engines else "no serving engine is"
        raise UnsupportedError("engine_not_available", f"{engine} is not known to run on {device.id}; {known}")


def check_embedding_served(shape: LlmShape, device: Device, engine: str) -> None:
    """Raises UnsupportedError where the engine documents no models that make vectors or scores."""
    known = device.embedding_engines
    if shape.embeds and known is not None and engine not in known:
        others = ", ".join(known) or "no engine does"
        raise UnsupportedError(
            "embedding_not_in_engine",
            f"{engine} documents no models that embed or score on {device.id}; documented there: {others}",
        )


ADAPTER_FIGURES = (
    "adapter_product_overhead_us", "adapter_eager_product_us", "adapter_stream_efficiency", "adapter_read_efficiency",
)  # fmt: skip
"""What adapters add to a step is not known without these."""


def check_adapters_served(shape: LlmShape, device: Device, engine: str, constants: Constants) -> None:
    """Raises UnsupportedError where the engine documents no adapters on the device, or none of the rank; FigureMissingError where
    what they add is not known; InvalidInputError for adapters that are no smaller than what they adapt."""
    adapters = shape.adapters
    if adapters is None:
        return
    check_adapters(shape)
    support = device.adapters.get(engine)
    if support is None:
        known = ", ".join(sorted(device.adapters)) or "no engine does"
        raise UnsupportedError(
            "adapters_not_in_engine", f"{engine} documents no adapters on {device.id}; documented there: {known}"
        )
    if adapters.rank > support.largest_rank:
        raise UnsupportedError(
            "adapter_rank_not_in_engine",
            f"{engine} serves adapters up to rank {support.largest_rank}, not {adapters.rank}",
        )
    missing = next((name for name in ADAPTER_FIGURES if name not in constants.priors), None)
    if missing is not None:
        raise FigureMissingError(constants.subject, missing)
    if adapters.slots < adapters.count and device.pcie_bytes_per_s <= 0.0:
        raise FigureMissingError(device.id, "link to the host, over which adapters are loaded")
