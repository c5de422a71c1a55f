"""One deployable configuration: a model on devices, in a layout, at a precision, under an engine."""

from dataclasses import dataclass, field, replace

from solver.engine.in_line import launches_in_line
from solver.engine.pipelining import batches_at_once
from solver.engine.profiles import (
    EngineProfile,
    engine_profile,
    finds_prefixes,
    keeps_in_host_memory,
    keeps_on_disk,
    keeps_replies_in_tiers,
    scan_kernel,
)
from solver.engine.releases import has_first_loop, waits_for_steps
from solver.engine.simulate import Schedule
from solver.engine.speculative import speculative_schedule, speculative_tables
from solver.engine.steady import FrontEnd
from solver.errors import FigureMissingError
from solver.hardware import Device
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.kv_cache import kv_cache_bytes_per_token
from solver.memory.weights import stored_bytes
from solver.precision import Precision
from solver.step.constants import Constants
from solver.step.rates import Rates, rates, rates_key
from solver.step.tables import GraphSizes, StepTables, step_tables
from solver.vision import Images
from solver.workload import EngineSettings, SpeculativeDecoding


@dataclass(frozen=True, slots=True)
class Speculation:
    """How a deployment drafts. draft: the draft model on the same devices in the same layout; None: it has no shape."""

    decoding: SpeculativeDecoding
    draft: "Configuration | None" = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that decides how one deployment performs, except its traffic.

    link_domain_devices: devices of a node that share the scale-up link. network_bytes_per_s: per device, between nodes;
    0 inside one node. kv_cache_tokens: per replica, from the memory plan. speculation: None where nothing is drafted.
    """

    shape: LlmShape
    device: Device
    constants: Constants
    layout: Layout
    precision: Precision
    engine: EngineSettings
    link_domain_devices: int
    network_bytes_per_s: float
    kv_cache_tokens: float
    speculation: Speculation | None = None
    _rates_found: list[Rates] = field(default_factory=list, init=False, repr=False, compare=False)
    """Made once: every part of an estimate asks for them."""
    _schedules_found: dict[float, Schedule] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By the share of prompts that is cached, made once: every draw asks for one."""

    @property
    def profile(self) -> EngineProfile:
        return engine_profile(self.engine.name)

    @property
    def random_routing(self) -> bool:
        """Do weights of random values choose its experts?"""
        return self.engine.random_weights and self.shape.is_moe

    @property
    def lanes(self) -> int:
        """Batches in flight over the whole deployment: those of each of its data-parallel copies."""
        return self.batches * self.layout.data_parallel

    @property
    def batches(self) -> int:
        """Batches in flight over the pipeline stages of one copy."""
        return batches_at_once(self.engine.name, self.engine.version, self.shape, self.layout.pipeline_parallel)

    @property
    def lockstep_copies(self) -> int:
        """Other copies of attention that have experts in common with one, and so step together with it."""
        shared = self.layout.expert_parallel // self.layout.tensor_parallel
        return min(max(shared, 1), self.layout.data_parallel) - 1

    def rates(self) -> Rates:
        if not self._rates_found:
            self._rates_found.append(self._rates())
        return self._rates_found[0]

    def _rates(self) -> Rates:
        found = self._rates_of_device()
        if not self.waits_for_steps:
            return found
        c = self.constants.si
        first = has_first_loop(self.engine.name, self.engine.version)
        return replace(
            found,
            step_overhead_s=found.step_overhead_s + c("first_loop_step_us" if first else "waited_step_us"),
            sequence_overhead_s=found.sequence_overhead_s + c("waited_sequence_us"),
        )

    @property
    def waits_for_steps(self) -> bool:
        """Is each step composed only when the one before is done?"""
        return waits_for_steps(self.engine.name, self.engine.version)

    def _rates_of_device(self) -> Rates:
        return rates(
            self.device,
            self.constants,
            self.precision,
            self.layout,
            link_domain_devices=self.link_domain_devices,
            network_bytes_per_s=self.network_bytes_per_s,
            beside_experts_bytes=stored_bytes(self.shape, self.precision.weights).matrices,
            scan_kernel=scan_kernel(self.engine, self.device.family),
        )

    def tables(self) -> StepTables:
        """What its steps take. Raises InvalidInputError where drafting costs nothing stated or the draft has too few seats."""
        if self.speculation is None:
            return self.plain_tables()
        decoding, draft = self.speculation.decoding, self.speculation.draft
        wide = self._tables(decoding.draft_tokens + 1)
        return speculative_tables(self.plain_tables(), wide, decoding, None if draft is None else draft.plain_tables())

    def plain_tables(self) -> StepTables:
        """Step tables without drafting."""
        return self._tables(1)

    def tables_key(self) -> tuple[object, ...] | None:
        """All that ``plain_tables`` depends on; None where tokens are drafted."""
        if self.speculation is not None:
            return None
        found = rates_key(self.rates())
        return (
            self.shape,
            found,
            self.layout,
            self.batches,
            self._graphs(1),
            self.engine.max_batched_tokens,
            self.engine.max_sequences,
        )

    def _tables(self, queries: int) -> StepTables:
        """Step tables where every step works on so many tokens of each sequence."""
        return step_tables(
            self.shape,
            self.rates(),
            self.layout,
            self._graphs(queries),
            max_batched_tokens=self.engine.max_batched_tokens,
            max_sequences=self.engine.max_sequences * queries,
            queries=queries,
            batches=self.batches,
        )

    def _graphs(self, queries: int) -> GraphSizes:
        degree = self.layout.tensor_parallel
        return self.profile.graphs_of(self.shape.family, self.device.memory_bytes, degree, self.engine, queries)

    def schedule(self, cached_prefix_fraction: float = 0.0) -> Schedule:
        """How one lane of this deployment schedules: it has its share of the seats and of the KV cache."""
        found = self._schedules_found.get(cached_prefix_fraction)
        if found is None:
            found = self._schedules_found[cached_prefix_fraction] = self._schedule(cached_prefix_fraction)
        return found

    def _schedule(self, cached_prefix_fraction: float) -> Schedule:
        c, profile, batches = self.constants.si, self.profile, self.batches
        front = front_end(self.constants, self.shape, self.engine.api_servers)
        found = finds_prefixes(self.engine.name) and not self.shape.bidirectional
        schedule = Schedule(
            max_batched_tokens=self.engine.max_batched_tokens,
            max_sequences=max(1, self.engine.max_sequences // batches),
            kv_cache_tokens=self.kv_cache_tokens / batches,
            mixes=profile.mixes,
            chunked_prefill=profile.chunked_prefill and not self.shape.bidirectional,
            static_batching=profile.static_batching,
            launches_in_line=launches_in_line(self.engine.name, self.engine.version, self.layout),
            preempts=profile.preempts,
            block_slack_tokens=(profile.block_tokens - 1) / 2.0,
            lag_fraction=0.0 if self.waits_for_steps else c("schedule_lag_fraction"),
            admission_interval_steps=self.engine.admission_interval_steps,
            request_overhead_s=front.request_overhead_s,
            turn_overhead_fraction=front.turn_overhead_fraction,
            request_ingest_s=front.request_ingest_s,
            prompt_token_s=front.prompt_token_s,
            prefix_token_s=c("prefix_token_us") if found else 0.0,
            admitted_token_s=c("admitted_token_us") if found else 0.0,
            answered_token_s=c("answered_token_us") if found else 0.0,
            token_front_end_s=front.token_front_end_s * batches,
            lane_step_s=c("pipeline_step_overhead_us") * self.layout.pipeline_parallel,
            lane_slowed_fraction=c("pipeline_slowed_fraction"),
            lockstep_copies=self.lockstep_copies,
            cached_prefix_fraction=cached_prefix_fraction,
            finds_prefixes=found,
            adapter_slots=self._adapter_slots(),
            clock_headroom_fraction=c("clock_headroom_fraction"),
            clock_sag_fraction=c("clock_sag_fraction"),
            clock_settling_s=c("clock_settling_s"),
        )
        schedule = self._with_tiers(schedule)
        return schedule if self.speculation is None else speculative_schedule(schedule, self.speculation.decoding)

    def _adapter_slots(self) -> int:
        """Slots for adapters where there are fewer than adapters, else 0."""
        adapters = self.shape.adapters
        return 0 if adapters is None or adapters.slots >= adapters.count else adapters.slots

    def _with_tiers(self, schedule: Schedule) -> Schedule:
        """Tokens of one lane that host memory keeps beside, and seconds to load one: every device of a stage loads its own part
        over its own PCIe, M / b tokens and b / (S·B) seconds for M bytes of a device, b bytes a token of all S stages. Of a disk
        likewise, B being a device's share of what all disks of the node are read at: all devices may read at once.

        Raises FigureMissingError where a tier is asked for and the device's PCIe, or the rate of the disk, is not known.
        """
        token_bytes = kv_cache_bytes_per_token(self.shape, self.precision.kv_cache, self.layout.tensor_parallel)
        if not self.engine.host_cache_bytes or not token_bytes or not keeps_in_host_memory(self.engine.name):
            return schedule
        if not self.device.pcie_bytes_per_s > 0.0:
            raise FigureMissingError(self.device.id, "pcie_generation")
        link_bytes_per_s = self.device.pcie_bytes_per_s * self.constants.si("host_load_efficiency")
        stage_token_bytes = token_bytes / self.layout.pipeline_parallel
        schedule = replace(
            schedule,
            host_cache_tokens=self.engine.host_cache_bytes / token_bytes,
            host_token_s=stage_token_bytes / link_bytes_per_s,
            tiers_keep_replies=keeps_replies_in_tiers(self.engine.name),
        )
        if not self.engine.disk_cache_bytes or not keeps_on_disk(self.engine.name):
            return schedule
        if not self.engine.disk_bytes_per_s:
            raise FigureMissingError(self.device.id, "disk_read_gbytes_per_s, or a node that states it")
        return replace(
            schedule,
            disk_cache_tokens=self.engine.disk_cache_bytes / token_bytes,
            disk_token_s=stage_token_bytes / self.engine.disk_bytes_per_s,
            tier_store_s=self.constants.si("tier_store_us"),
            tiers_keep_replies=True,  # files for such plans tell the engine to
        )

    def with_constants(self, constants: Constants) -> "Configuration":
        """The same under other constants, a draft model's device and engine included; what belongs to its weights stays."""
        speculation = self.speculation
        if speculation is not None and speculation.draft is not None:
            draft = speculation.draft
            priors = {
                name: own if own.llms else constants.priors.get(name, own)
                for name, own in draft.constants.priors.items()
            }
            moved = Constants(draft.constants.subject, priors)
            speculation = replace(speculation, draft=replace(draft, constants=moved))
        return replace(self, constants=constants, speculation=speculation)


def front_end(constants: Constants, shape: LlmShape, api_servers: int = 1) -> FrontEnd:
    """The engine's times outside the device. Images pass through its front end one after another, before their request is queued; so
    do items, token by token where they are token ids, which are checked one by one. Several processes pass tokens on side by side,
    each those of its own requests; what they would spare prompts that come together was not measured, and is not counted."""
    token_front_end_s = constants.si("token_front_end_us") / api_servers
    if shape.embeds:
        text, ids = constants.si("item_token_us"), constants.si("item_token_id_us")
        return FrontEnd(
            request_overhead_s=constants.si("item_overhead_ms"),
            request_ingest_s=constants.si("item_ingest_us"),
            prompt_token_s=text + shape.token_ids_fraction * (ids - text),
            token_front_end_s=token_front_end_s,
            schedule_lag_fraction=constants.si("schedule_lag_fraction"),
        )
    images = shape.images
    looks = images is not None and not images.heard
    return FrontEnd(
        request_overhead_s=constants.si("request_overhead_ms") + (constants.si("image_overhead_ms") if looks else 0.0),
        request_ingest_s=constants.si("request_ingest_us")
        + (host_image_s(images, constants) if images is not None else 0.0),
        prompt_token_s=constants.si("prompt_token_us"),
        token_front_end_s=token_front_end_s,
        schedule_lag_fraction=constants.si("schedule_lag_fraction"),
        turn_overhead_fraction=constants.si("turn_overhead_fraction"),
    )


def host_image_s(images: Images, constants: Constants) -> float:
    """Seconds that the images or videos of one request take the host, one after another, before it is queued:

        n·(`image_ingest_ms` + megapixels·`image_megapixel_ms`)

    0 for recordings: what making their spectrograms takes is not known.
    """
    if images.heard:
        return 0.0
    each_s = constants.si("image_ingest_ms") + images.megapixels * constants.si("image_megapixel_ms")
    return images.per_request * each_s
