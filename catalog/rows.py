"""The shapes of catalog rows, in datasheet units.

A row is what one file entry says, validated on its own: types, ranges, no unknown keys. Relations between rows
(a node naming a device) are checked by ``catalog.read``.
"""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Checked = Literal["read", "data_set", "derived", "memory", "assumption", "measured"]
"""How a figure was checked: its text was read; taken from a named data set; computed from read figures (formula in the
notes); recalled and to be verified at the source; an engineering default; measured by this project."""

Status = Literal["shipping", "legacy", "preliminary", "announced"]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.\-_]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Row(BaseModel):
    """Base: frozen, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Provenance(Row):
    """Where a row's figures come from. ``exceptions`` gives fields whose source or check differs from the row's."""

    source: str = Field(min_length=3)
    retrieved_on: dt.date
    checked: Checked
    exceptions: dict[str, str] = {}
    notes: str = ""


class DeviceRow(Row):
    """One accelerator, as an engine sees it.

    Matrix rates are DENSE; sparse ones are kept apart and never planned with.
    """

    id: Slug
    name: str
    vendor: str
    architecture: str
    family: Slug
    """Devices that share efficiencies: hopper, blackwell-dc, blackwell-gr, ampere-dc, ampere-gr, ada, cdna3, tpu-v5e,
    gaudi3, trainium2, xeon-amx … (dc: data-centre dies with HBM; gr: graphics dies with GDDR)"""
    category: Literal[
        "datacenter_gpu", "workstation_gpu", "consumer_gpu", "tpu", "trainium", "gaudi", "lpu", "wafer_scale",
        "dataflow", "risc_v", "cpu", "unified_memory", "edge", "npu", "other",
    ]  # fmt: skip
    memory_class: Literal["hbm", "gddr", "unified", "host", "sram"] | None = None
    """gddr: graphics or other low-power DRAM on a card of its own. unified: shared with the host. host: a processor's
    DIMMs. sram: on-chip memory only. None: not published."""
    status: Status
    launched: str | None = None
    form_factor: str | None = None
    memory_gib: Positive | None = None
    """What the driver exposes, in GiB."""
    memory_gb_marketed: Positive | None = None
    memory_type: str | None = None
    memory_bandwidth_gb_per_s: Positive | None = None
    dense_fp64_tflop_per_s: Positive | None = None
    dense_fp32_tflop_per_s: Positive | None = None
    dense_tf32_tflop_per_s: Positive | None = None
    dense_bf16_tflop_per_s: Positive | None = None
    dense_fp16_tflop_per_s: Positive | None = None
    dense_fp8_tflop_per_s: Positive | None = None
    dense_int8_top_per_s: Positive | None = None
    dense_fp6_tflop_per_s: Positive | None = None
    dense_int4_top_per_s: Positive | None = None
    dense_fp4_tflop_per_s: Positive | None = None
    sparse_bf16_tflop_per_s: Positive | None = None
    sparse_fp8_tflop_per_s: Positive | None = None
    sparse_int8_top_per_s: Positive | None = None
    sparse_fp4_tflop_per_s: Positive | None = None
    on_chip_sram_mb: Positive | None = None
    cache_mb: Positive | None = None
    power_limit_w: Positive | None = None
    power_basis: str | None = None
    """TDP, vendor maximum, third-party estimate, …"""
    link_name: str | None = None
    link_one_direction_gb_per_s: Positive | None = None
    link_domain_devices: int = Field(default=1, ge=1)
    link_topology: str | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    engines: list[str] = []
    """Serving engines known to run on it: vllm, sglang, tensorrt-llm, tgi, llama.cpp, jetstream, neuron, groq, …"""
    past_engines: dict[str, str] = {}
    """Engines of which only earlier releases ran on it: the last documented one."""
    missing: list[str] = []
    """Fields that nobody has published; a calculation that needs one is refused by that name."""
    provenance: Provenance


DeviceClass = Literal["datacentre", "workstation", "consumer", "edge"]
"""For whom the vendor makes a device: server halls, desks of professionals, private persons, machines in the field."""

ProviderClass = Literal["hyperscaler", "specialist", "marketplace"]
"""hyperscaler: a general cloud of world-wide regions. specialist: any other seller of capacity it runs itself, owned or
leased. marketplace: brings together tenants and hosts that are others'."""


class DeviceLineRow(Row):
    """A vendor's product line: what it says of its devices' buyers holds for all of them."""

    id: Slug
    name: str
    vendor: str
    device_class: DeviceClass
    devices: Annotated[list[Slug], Field(min_length=1)]
    provenance: Provenance


class QuotaRow(Row):
    """An account's limit that a provider's machines count against, as the provider calls it.

    instances: how the names of those machines begin. commitments: for which it holds; unit: what is counted.
    """

    name: str
    instances: Annotated[list[str], Field(min_length=1)]
    commitments: Annotated[list[Literal["on_demand", "spot"]], Field(min_length=1)]
    unit: Literal["vCPU", "GPU"]
    source: str


class ProviderRow(Row):
    """A seller of machine hours, and which of the regions in its offers name a place.

    region_classes: regions that are sold in another way than the provider's class says. places: region → the city,
    metropolitan area or country it names. no_place: regions that name none ("all", "global", "us").
    """

    id: Slug
    name: str
    provider_class: ProviderClass
    region_classes: dict[str, ProviderClass] = {}
    places: dict[str, Annotated[str, Field(min_length=2)]] = {}
    no_place: list[str] = []
    quotas: list[QuotaRow] = []
    provenance: Provenance

    def class_in(self, region: str) -> ProviderClass:
        """How the provider sells in ``region``."""
        return self.region_classes.get(region, self.provider_class)


class PartitionRow(Row):
    """One profile into whose instances a device can be split, all of its instances alike.

    multiprocessors, device_multiprocessors: compute of an instance and of the whole device. slices, device_slices: of
    memory, with their bandwidth.
    """

    device: Slug
    profile: Slug
    instances: int = Field(ge=2)
    """Most instances of the profile that one device holds."""
    multiprocessors: int = Field(ge=1)
    device_multiprocessors: int = Field(ge=1)
    memory_gib: Positive
    """What an instance exposes."""
    slices: int = Field(ge=1)
    device_slices: int = Field(ge=1)
    provenance: Provenance


class NodeRow(Row):
    """A machine that can be bought or rented: ``devices`` of one kind in one box (or one slice or rack)."""

    id: Slug
    name: str
    device: Slug
    devices: int = Field(ge=1)
    kind: Literal[
        "hgx_8", "oam_8", "nvl_rack", "tpu_slice", "neuron_instance", "pcie_server", "workstation", "cpu_server",
        "unified_desktop", "edge_board", "lpu_rack", "wafer_system", "superchip", "other",
    ]  # fmt: skip
    link_domain_devices: int = Field(ge=1)
    """Devices of this node that one scale-up domain joins (1: PCIe only)."""
    rack_domain_devices: int = Field(default=0, ge=0)
    """Devices of a scale-up domain that spans nodes of this type; 0 where none does."""
    pcie_generation: int | None = None
    pcie_lanes_per_device: int | None = None
    network_gbit_per_s: NotNegative | None = None
    """All NICs together, one direction. None: unknown, so replicas never span such nodes."""
    network_name: str | None = None
    vcpus: NotNegative | None = None
    host_memory_gib: NotNegative | None = None
    local_disk_gib: NotNegative | None = None
    """Of NVMe disks in the machine that come with it, all together."""
    local_disk_read_gbytes_per_s: NotNegative | None = None
    """At which these are read, all together, 10⁹ bytes a second."""
    local_disk_provenance: Provenance | None = None
    """Of both, where they are stated."""
    host_power_w: NotNegative | None = None
    psu_w: Positive | None = None
    tenancy: Literal["machine", "container"] | None = None
    """What is rented. container: without rights on the driver, so that devices cannot be split. None: not stated."""
    provenance: Provenance


class OfferRow(Row):
    """Who offers hours of a node, where, under which commitment. Prices are separate steps in time."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.\-_]*(:[A-Za-z0-9][A-Za-z0-9.\-_]*){3}$")]
    """provider:instance:region:commitment"""
    provider: Slug
    instance: str
    region: str
    commitment: Literal[
        "on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront",
        "capacity_block", "purchase",
    ]  # fmt: skip
    node: Slug
    max_nodes: int | None = Field(default=None, ge=0)
    notes: str = ""


class SourceRow(Row):
    """Where a set of prices comes from, under the short key that price files use."""

    text: str = Field(min_length=10)


class PriceRow(Row):
    """One price step: from ``valid_from`` on, the offer costs this (None: withdrawn). Per node-hour, USD.

    ``source`` is the full text behind the short key of the file.
    """

    offer: str
    valid_from: dt.date
    usd_per_hour: Annotated[Decimal, Field(gt=0, max_digits=14, decimal_places=6)] | None
    source: str
    retrieved_on: dt.date
    confidence: Literal["high", "medium", "low"]


UsdPerKwh = Annotated[Decimal, Field(ge=0, max_digits=10, decimal_places=6)]


class EnergyRow(Row):
    """Electricity of one place: tariff with its usual range, and carbon intensity where a source gives one."""

    region: str
    name: str
    usd_per_kwh: UsdPerKwh
    low_usd_per_kwh: UsdPerKwh | None = None
    high_usd_per_kwh: UsdPerKwh | None = None
    as_of: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")] | None = None
    """The month the tariff is of; None for an assumption."""
    grid_kg_co2e_per_kwh: NotNegative | None = None
    provenance: Provenance


class ConstantRow(Row):
    """One constant of the performance model for a device family (or one device), an engine and a class of work.

    ``name`` and its unit are listed in docs/mathematics.md. low–high is the range in which nine of ten values are
    expected to lie.
    """

    name: Slug
    family: str = "*"
    device: str = "*"
    engine: str = "*"
    llms: tuple[Slug, ...] = ()
    """Of these models alone, where runs of others do not bear it out; of any where none is named."""
    value: float = Field(allow_inf_nan=False)
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)
    unit: str
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    provenance: Provenance

    @property
    def of_llms(self) -> str:
        """The models it is of, as a part of its key: ``*`` for any."""
        return " ".join(sorted(self.llms)) or "*"


class LlmAttentionRow(Row):
    """A group of identical token-mixing layers."""

    kind: Literal["full", "sliding", "chunked", "mla", "linear", "none"]
    layers: int = Field(ge=1)
    heads: int = Field(default=0, ge=0)
    kv_heads: int = Field(default=0, ge=0)
    head_dim: int = Field(default=0, ge=0)
    v_head_dim: int = Field(default=0, ge=0)
    window_tokens: int = Field(default=0, ge=0)
    q_lora_rank: int = Field(default=0, ge=0)
    kv_lora_rank: int = Field(default=0, ge=0)
    qk_nope_head_dim: int = Field(default=0, ge=0)
    qk_rope_head_dim: int = Field(default=0, ge=0)
    kv_values_per_token: NotNegative = 0.0
    attended_tokens_limit: int = Field(default=0, ge=0)
    index_bytes_per_token: NotNegative = 0.0
    state_values: NotNegative = 0.0
    state_value_bytes: NotNegative = 2.0
    key_heads: int = Field(default=0, ge=0)
    """Of a gated delta rule, whose values have ``heads``; 0: another recurrence, or none."""
    weights: NotNegative


class LlmFeedForwardRow(Row):
    """A group of identical feed-forward layers."""

    layers: int = Field(ge=1)
    intermediate: int = Field(default=0, ge=0)
    grouped_intermediate: int = Field(default=0, ge=0)
    """Width in published checkpoints whose weights are quantised in groups, padded so that shards hold whole groups; 0: as it is."""
    gated: bool = True
    experts: int = Field(default=0, ge=0)
    top_k: int = Field(default=0, ge=0)
    expert_intermediate: int = Field(default=0, ge=0)
    expert_hidden: int = Field(default=0, ge=0)
    shared_intermediate: int = Field(default=0, ge=0)
    weights: NotNegative
    active_weights: NotNegative


class LlmVisionRow(Row):
    """A vision encoder; field for field the solver's (``solver.vision``). full_layers: those that look beyond ``window_patches``."""

    layers: int = Field(ge=1)
    hidden: int = Field(ge=1)
    heads: int = Field(ge=1)
    intermediate: int = Field(ge=1)
    gated: bool
    patch_px: int = Field(ge=1)
    merge: int = Field(ge=1)
    image_px: int = Field(default=0, ge=0)
    least_px: int = Field(default=0, ge=0)
    most_px: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    extra_projectors: int = Field(default=0, ge=0)
    window_patches: int = Field(default=0, ge=0)
    full_layers: int = Field(ge=0)
    weights: Positive
    most_tiles: int = Field(default=0, ge=0)
    projector: int = Field(default=0, ge=0)
    clip_frames: int = Field(default=0, ge=0)
    least_clip_px: int = Field(default=0, ge=0)
    most_clip_px: int = Field(default=0, ge=0)
    least_frames: int = Field(default=0, ge=0)
    most_frames: int = Field(default=0, ge=0)


class LlmAudioRow(Row):
    """An audio encoder; field for field the solver's (``solver.audio``)."""

    layers: int = Field(ge=1)
    hidden: int = Field(ge=1)
    heads: int = Field(ge=1)
    intermediate: int = Field(ge=1)
    pooled: int = Field(ge=1)
    chunk_s: Positive
    most_s: NotNegative = 0.0
    padded_tokens: bool = False
    joined: bool = False
    weights: Positive


class LlmRow(Row):
    """One language model's architecture; field for field the solver's shape, plus provenance."""

    id: Slug
    name: str
    hugging_face_id: str | None = None
    family: Slug
    hidden: int = Field(ge=1)
    vocabulary: int = Field(ge=1)
    tied_embeddings: bool
    max_context_tokens: int = Field(ge=1)
    attention: list[LlmAttentionRow]
    feed_forward: list[LlmFeedForwardRow]
    qk_norm: bool = False
    native_weights: str = "bf16"
    native_beside_experts: str | None = None
    """Format of everything but the routed experts in the published checkpoint, where it differs."""
    other_weights: NotNegative = 0.0
    unquantised_weights: NotNegative = 0.0
    embeds: bool = False
    """Makes a vector or a score of a text, and no tokens."""
    bidirectional: bool = False
    """Every token attends to all of its text."""
    audio: LlmAudioRow | None = None
    """What it listens with; None likewise."""
    vision: LlmVisionRow | None = None
    """What it looks at images with; None where it takes none, or where its figures are not known."""
    published_total_weights: Positive | None = None
    published_active_weights: Positive | None = None
    extended_context_tokens: int | None = Field(default=None, ge=1)
    """Longest context that a source states the model is served with, positions scaled; None where none does."""
    provenance: Provenance
