"""How serving engines schedule, where they differ. Structure only; times are constants in the catalog."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from solver.errors import UnsupportedError
from solver.step.tables import GraphSizes
from solver.workload import EngineSettings

SHARDED_DEGREE = 4
"""Degree of tensor parallelism from which SGLang captures more."""


@dataclass(frozen=True, slots=True)
class MemoryGraphs:
    """What an engine captures on devices with less memory than this; sharded: from ``SHARDED_DEGREE`` of tensor parallelism."""

    below_bytes: float
    alone: GraphSizes
    sharded: GraphSizes


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """Scheduling behaviour of one engine.

    chunked_prefill: prompts are cut to the token budget of a step.
    mixes: prompts and running sequences share a step, running ones first; otherwise prefill steps run alone and
        running sequences wait for them.
    static_batching: a batch is filled, served to its longest output, then the next one is filled.
    preempts: a full KV cache evicts the latest request and recomputes it; otherwise requests reserve
        their whole context at admission.
    graphs: captured batch sizes. block_tokens: KV-cache block length.
    source: where the behaviour is documented.
    family_graphs: captured sizes of families of models for which the engine captures others.
    memory_graphs: captured sizes by the memory of a device and the degree of tensor parallelism, the first that fits.
    admits_in_intervals: can be told to take new requests in once in so many decode steps.
    many_api_servers: can be told to answer its users from several processes.
    launches_in_line: one process composes steps and launches them where a copy has one device, and hands on a step's tokens once the
        next one is launched.
    captures_as_told: can be told up to how many tokens it captures; unless told at most two steps of its seats, and no more than a
        step may have.
    """

    name: str
    chunked_prefill: bool
    mixes: bool
    static_batching: bool
    preempts: bool
    graphs: GraphSizes
    block_tokens: int
    source: str
    family_graphs: Mapping[str, GraphSizes] = field(default_factory=dict)
    memory_graphs: tuple[MemoryGraphs, ...] = ()
    admits_in_intervals: bool = False
    many_api_servers: bool = False
    captures_as_told: bool = False
    launches_in_line: bool = False

    def graphs_of(
        self, family: str, memory_bytes: float, tensor_parallel: int, settings: EngineSettings, queries: int = 1
    ) -> GraphSizes:
        """Captured sizes for a family of models on devices with so much memory. queries: tokens of one sequence in a decode step.

        >>> vllm, sglang = engine_profile("vllm"), engine_profile("sglang")
        >>> wide, few, told = (EngineSettings(max_sequences=n, max_captured_tokens=m) for n, m in ((512, None), (60, None), (60, 2048)))
        >>> [vllm.graphs_of(name, 80e9, 1, wide).most_tokens for name in ("gpt-oss", "llama")]
        [1024, 512]
        >>> [vllm.graphs_of("llama", 80e9, 1, seats).most_tokens for seats in (few, told)]
        [120, 2048]
        >>> [sglang.graphs_of("llama", gib * 2.0**30, tp, few).most_tokens for gib, tp in ((16, 1), (80, 1), (80, 4), (180, 1))]
        [8, 256, 512, 512]
        """
        if self.captures_as_told:
            return strided_graphs(self._most_captured(family, settings, queries))
        for row in self.memory_graphs:
            if memory_bytes < row.below_bytes:
                return row.sharded if tensor_parallel >= SHARDED_DEGREE else row.alone
        return self.family_graphs.get(family, self.graphs)

    def _most_captured(self, family: str, settings: EngineSettings, queries: int) -> int:
        """Tokens up to which an engine captures that can be told."""
        unless_told = self.family_graphs.get(family)
        if settings.max_captured_tokens is not None:
            most = settings.max_captured_tokens
        elif unless_told is not None:
            most = unless_told.most_tokens
        else:
            most = min(2 * settings.max_sequences * queries, self.graphs.most_tokens)
        return min(most, settings.max_batched_tokens)


def strided_graphs(most: int) -> GraphSizes:
    """vLLM's captured sizes up to ``most`` tokens: every eighth, from 256 on every sixteenth.

    >>> strided_graphs(5).sizes, len(strided_graphs(512).sizes), strided_graphs(270).most_tokens
    ((1, 2, 4), 51, 256)
    """
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, most + 1, 16))
    return GraphSizes(tuple(size for size in sizes if size <= most))


VLLM_GRAPHS = strided_graphs(512)
VLLM_GPT_OSS_GRAPHS = strided_graphs(1024)
SGLANG_SIZES = (1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), 512)
SGLANG_PREFILL_TOKENS = 160
GIB_BYTES = 2.0**30


def sglang_graphs(most: int) -> GraphSizes:
    """SGLang's captured decode batches up to ``most``; steps that prefill are launched from the host above the least it captures."""
    return GraphSizes(
        tuple(size for size in SGLANG_SIZES if size <= most), prefill_tokens=min(most, SGLANG_PREFILL_TOKENS)
    )


SGLANG_MEMORY_GRAPHS = (
    MemoryGraphs(20 * GIB_BYTES, sglang_graphs(8), sglang_graphs(8)),
    MemoryGraphs(35 * GIB_BYTES, sglang_graphs(24), sglang_graphs(80)),
    MemoryGraphs(60 * GIB_BYTES, sglang_graphs(32), sglang_graphs(160)),
    MemoryGraphs(160 * GIB_BYTES, sglang_graphs(256), sglang_graphs(512)),
)
TRT_GRAPHS = GraphSizes((1, 2, 4, *range(8, 129, 8), 256))

PROFILES: dict[str, EngineProfile] = {
    p.name: p
    for p in (
        EngineProfile("vllm", True, True, False, True, VLLM_GRAPHS, 16,
                      "vLLM V1 scheduler; captured sizes: _set_cudagraph_sizes of vllm/config/vllm.py in 0.24.0 (as told, "
                      "else twice --max-num-seqs, at most 512), read 2026-11-28; up to 1,024 tokens for "
                      "gpt-oss: its log, 'Overriding max cuda graph capture size to 1024 for performance'",
                      {"gpt-oss": VLLM_GPT_OSS_GRAPHS}, many_api_servers=True, captures_as_told=True,
                      launches_in_line=True),
        EngineProfile("sglang", True, False, False, True, sglang_graphs(512), 1,
                      "SGLang scheduler: prefill batches take precedence over decode; chunked prefill size; captured sizes by "
                      "memory and tensor parallelism: ServerArgs of sglang/srt/server_args.py (cuda_graph_max_bs); admission in intervals: "
                      "SchedulerRecvSkipper of sglang/srt/managers/scheduler_recv_skipper.py; read 2026-11-24",
                      memory_graphs=SGLANG_MEMORY_GRAPHS, admits_in_intervals=True),
        EngineProfile("tensorrt-llm", True, True, False, False, TRT_GRAPHS, 32,
                      "TensorRT-LLM in-flight batching with the GUARANTEED_NO_EVICT capacity scheduler"),
        EngineProfile("tgi", False, False, False, False, GraphSizes((1, 2, 4, 8, 16, 32)), 16,
                      "TGI: prefill of waiting requests pauses decoding; tokens reserved at admission"),
        EngineProfile("llama.cpp", True, True, False, False, GraphSizes(()), 1,
                      "llama.cpp server: slots with continuous batching, context reserved per slot"),
        EngineProfile("static", False, False, True, False, GraphSizes(()), 1,
                      "static batching: fill, run to the longest output, refill"),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchedDrafts:
    """Releases of an engine, up to one, whose draft models run outside captured graphs: the host launches every kernel of theirs, and
    how long that takes is a figure of the host. seen: what came of it where it was measured."""

    up_to: tuple[int, ...]
    seen: str
    source: str


@dataclass(frozen=True, slots=True)
class DraftingSupport:
    """On devices of which vendors an engine drafts, and where that is documented. Not across pipeline stages."""

    vendors: tuple[str, ...]
    source: str
    launched_models: LaunchedDrafts | None = None


DRAFTING: dict[str, DraftingSupport] = {
    "vllm": DraftingSupport(
        ("NVIDIA", "AMD"),
        "https://docs.vllm.ai/en/v0.14.0/features/spec_decode/ (not compatible with pipeline parallelism) and "
        "docs/features/speculative_decoding of its repository (EAGLE, n-gram), read 2026-11-23; that it works on AMD: recalled",
        LaunchedDrafts(
            (0, 24),
            "Qwen3 8B with Qwen3 0.6B drafting three tokens took 76 to 89 ms a step on one H100 under 0.24.0, at 1 to 64 clients, "
            "where 13 to 28 were expected",
            "https://github.com/vllm-project/vllm/pull/47460 (draft models never replay their graphs; opened 2026-07-02, merged), "
            "read 2026-11-24",
        ),
    ),
    "sglang": DraftingSupport(
        ("NVIDIA",),
        "https://docs.sglang.io/docs/advanced_features/speculative_decoding (EAGLE, MTP, NGRAM on CUDA only); read 2026-11-23",
    ),
}
"""Engines not named here may draft too: their documentation has not been read, so plans do not count on it."""


@dataclass(frozen=True, slots=True)
class PlannedCapture:
    """Up to how many tokens of a step plans tell an engine to capture, on devices of which vendors, and where that is documented."""

    with_experts: int
    without: int
    vendors: tuple[str, ...]
    source: str


PLANNED_CAPTURE: dict[str, PlannedCapture] = {
    "vllm": PlannedCapture(
        4096,
        512,
        ("NVIDIA", "AMD"),
        "--max-cudagraph-capture-size: https://github.com/vllm-project/vllm/pull/26016, read 2026-11-28; 4,096: the most that was measured "
        "here, with a mixture of experts on H100 SXM under 0.24.0 (docs/decisions/0095), and the least that NVIDIA's model card of "
        "Nemotron 3 Embed recommends; 512 is what vLLM captures unless told, on 256 seats and more; AMD: recalled",
    ),
}
"""Launched from the host, a layer of experts takes a millisecond and more, which only a captured graph spares."""


def planned_capture(engine: str, vendor: str, has_experts: bool) -> int | None:
    """Tokens of a step up to which plans tell an engine to capture; None: nothing is known to be told.

    >>> planned_capture("vllm", "NVIDIA", True), planned_capture("vllm", "Google", True), planned_capture("sglang", "NVIDIA", True)
    (4096, None, None)
    """
    known = PLANNED_CAPTURE.get(engine)
    if known is None or vendor not in known.vendors:
        return None
    return known.with_experts if has_experts else known.without


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """Most tokens of a step that plans choose among, beside what is asked, on devices of which vendors, and where that is documented."""

    batched_tokens: tuple[int, ...]
    vendors: tuple[str, ...]
    source: str


PLANNED_STEPS: dict[str, PlannedSteps] = {
    "vllm": PlannedSteps(
        (2048, 512),
        ("NVIDIA", "AMD"),
        "--max-num-batched-tokens: https://docs.vllm.ai/en/stable/configuration/optimization/ (chunked prefill: smaller values for the "
        "time between tokens, larger ones for first tokens), read 2026-11-28; 512 and 2,048 measured here with a dense model, 1,024 "
        "with a mixture, on H200 SXM under 0.24.0 (docs/decisions/0098); AMD: recalled",
    ),
}
"""A prompt in pieces holds up less of the replies that run beside it, and passes the weights more often."""


def planned_batched_tokens(engine: str, vendor: str, asked: int, sequences: int) -> tuple[int, ...]:
    """Most tokens of a step that plans try where so many are asked, each no fewer than sequences, which vLLM requires.

    >>> planned_batched_tokens("vllm", "NVIDIA", 8192, 512), planned_batched_tokens("vllm", "NVIDIA", 2048, 1024)
    ((2048, 512), ())
    """
    known = PLANNED_STEPS.get(engine)
    if known is None or vendor not in known.vendors:
        return ()
    return tuple(tokens for tokens in known.batched_tokens if sequences <= tokens < asked)


@dataclass(frozen=True, slots=True)
class PlannedServers:
    """Processes that answer, for each copy of attention, which plans choose beside one, on devices of which vendors, and where that is
    documented."""

    api_servers: int
    vendors: tuple[str, ...]
    source: str


PLANNED_SERVERS: dict[str, PlannedServers] = {
    "vllm": PlannedServers(
        4,
        ("NVIDIA", "AMD"),
        "--api-server-count: https://docs.vllm.ai/en/latest/design/arch_overview/ (V1 process architecture), read 2026-11-28; 4: what was "
        "measured here, with a mixture on H100 SXM under 0.24.0 (docs/decisions/0094); on other vendors' devices the engine may want the "
        "host's processors for itself; AMD: recalled",
    ),
}
"""Each passes on the tokens of its own requests."""


def planned_api_servers(engine: str, vendor: str, asked: int) -> int | None:
    """Processes that answer for each copy of attention which plans try where so many are asked; None: no other number.

    >>> planned_api_servers("vllm", "NVIDIA", 1), planned_api_servers("vllm", "NVIDIA", 4), planned_api_servers("sglang", "NVIDIA", 1)
    (4, None, None)
    """
    known = PLANNED_SERVERS.get(engine)
    if known is None or vendor not in known.vendors or known.api_servers <= asked:
        return None
    return known.api_servers


PREFIX_CACHES: dict[str, str] = {
    "vllm": "https://docs.vllm.ai/en/latest/design/prefix_caching/ (whole blocks by hash, the least recently used free one forgotten "
    "first, a request's last ones before its first), read 2026-11-24; that it is on unless switched off: recalled",
    "sglang": "https://docs.sglang.io/docs/advanced_features/session_radix_cache and its server arguments (radix cache, least "
    "recently used first), read 2026-11-24; on unless --disable-radix-cache: recalled",
    "tensorrt-llm": "https://nvidia.github.io/TensorRT-LLM/advanced/kv-cache-reuse.html (reuse of blocks is on by default), "
    "read 2026-11-24",
}
"""Engines that find prompts in the cache of earlier requests, and where that is documented. Others are taken to find nothing."""


HOST_CACHES: dict[str, str] = {
    "vllm": "https://docs.vultr.com/inference-cookbook/rocm/optimization/kv-cache-offloading (--kv-offloading-backend native, "
    "--kv-offloading-size), read 2026-11-24; that blocks are copied as they are computed, the least recently used going first: "
    "recalled",
    "sglang": "https://docs.nvidia.com/dynamo/dev/cli/model-deployment/kv-cache-offloading.md (HiCache as a backend of SGLang), read "
    "2026-11-24; --hicache-size of each rank and write-through: recalled",
}
"""Engines that keep what requests leave in host memory too where told to, and where that is documented."""
PROMPTS_ONLY_CACHES: dict[str, str] = {
    "vllm": "https://github.com/vllm-project/vllm/pull/43797 (offload_prompt_only, on unless switched off; merged 2026), read 2026-11-25; "
    "measured with 0.24.0 (docs/sessions.md)",
}
"""Of those, engines whose tiers keep blocks of prompts alone: a reply is kept once it is part of the next prompt."""
LARGER_HOST_CACHES: dict[str, str] = {
    "sglang": "sgl-project/sglang, memory_pool_host.py: asserts that the pool in host memory is larger than the device's, read 2026-11-24",
}
"""Of those, engines that start only where that tier is larger than the cache of the device."""


DISK_CACHES: dict[str, str] = {
    "vllm": "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/ (TieringOffloadingSpec with a secondary tier of type fs: blocks "
    "are written there as they are produced, and only host memory has access to the device), read 2026-11-25; from 0.22 on: "
    "https://docs.vllm.ai/en/v0.22.1/api/vllm/v1/kv_offload/tiering/",
    "sglang": "https://docs.sglang.io/docs/advanced_features/hicache_best_practices (--hicache-storage-backend, write_through) and "
    "sgl-project/sglang, mem_cache/hicache_storage.py and storage/file/lru_file_evictor.py (backend file: max_size, the least recently "
    "used files going first), read 2026-11-25",
}
"""Of those, engines that keep it on a local disk under host memory too, and where that is documented."""
TIERING_SINCE: dict[str, tuple[int, ...]] = {"vllm": (0, 22)}
"""First release that does, where known."""


def keeps_on_disk(engine: str) -> bool:
    """Whether a disk under the tier of host memory is documented for the engine."""
    return engine in DISK_CACHES


def keeps_replies_in_tiers(engine: str) -> bool:
    """Whether tiers under the device keep blocks of replies too."""
    return engine not in PROMPTS_ONLY_CACHES


def keeps_in_host_memory(engine: str) -> bool:
    """Whether a tier of host memory under the cache of prefixes is documented for the engine."""
    return engine in HOST_CACHES


def finds_prefixes(engine: str) -> bool:
    """Whether a cache of prefixes is documented for the engine, on by default."""
    return engine in PREFIX_CACHES


def drafts(engine: str, vendor: str, pipeline_parallel: int) -> bool:
    """Whether drafting is documented for the engine on a vendor's devices, cut into so many stages."""
    support = DRAFTING.get(engine)
    return support is not None and vendor in support.vendors and pipeline_parallel == 1


def launched_drafts(engine: str) -> LaunchedDrafts | None:
    """Releases of the engine that launch draft models from the host; None where none is known to."""
    support = DRAFTING.get(engine)
    return None if support is None else support.launched_models


TRITON, FLASHINFER = "triton", "flashinfer"
SCANS_WITH_FLASHINFER: dict[str, tuple[frozenset[str], str]] = {
    "vllm": (
        frozenset({"hopper", "blackwell-dc"}),
        "_resolve_gdn_prefill_backend of vLLM 0.24.0, whose package asks for flashinfer-python; read on 28 November 2026",
    ),
}  # fmt: skip
"""Families of devices on which an engine, told nothing, scans prompts of gated delta rules with FlashInfer's kernels, and where that
is stated; with Triton's elsewhere, and where FlashInfer is not installed."""


def scan_kernel(settings: EngineSettings, family: str) -> str:
    """Whose kernels scan prompts in layers of a gated delta rule on devices of a family.

    >>> told = EngineSettings("vllm", scan_kernel="triton")
    >>> scan_kernel(EngineSettings("vllm"), "hopper"), scan_kernel(told, "hopper"), scan_kernel(EngineSettings("vllm"), "ampere")
    ('flashinfer', 'triton', 'triton')
    """
    families, _ = SCANS_WITH_FLASHINFER.get(settings.name, (frozenset(), ""))
    return settings.scan_kernel or (FLASHINFER if family in families else TRITON)


ALIKE: dict[str, str] = {
    # Continuous batching with paged caches, compiled per batch size.
    "jetstream": "vllm", "maxtext": "vllm", "nxd-inference": "vllm", "neuron": "vllm", "tt-metal": "vllm",
    "efficient-transformers": "vllm", "groq": "vllm", "cerebras": "vllm", "sambanova": "vllm",
    # Slots on one machine.
    "mlc-llm": "llama.cpp", "mlx": "llama.cpp", "openvino": "llama.cpp", "onnxruntime": "llama.cpp",
    "qnn": "llama.cpp", "coreml": "llama.cpp", "tflite": "llama.cpp",
}  # fmt: skip
"""Engines scheduled like one that has a profile; times still come from their own constants."""


def engine_profile(name: str) -> EngineProfile:
    """The profile of an engine, or of the one it is scheduled like.

    Raises UnsupportedError for an engine not known here.
    """
    profile = PROFILES.get(ALIKE.get(name, name))
    if profile is None:
        known = ", ".join(sorted((*PROFILES, *ALIKE)))
        raise UnsupportedError("unknown_engine", f"engine {name!r} is not known; known engines: {known}")
    return profile


def engines_for(available: tuple[str, ...], default: str, asked: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Engines a device is planned with: those asked for that run on it; where nothing is asked the default one, or the first
    known one where that does not run."""
    known = [name for name in available if name in PROFILES or name in ALIKE]
    if asked:
        return tuple(name for name in asked if name in known)
    return (default,) if default in available else tuple(known[:1])
