"""A deployment that drafts: what drafting asks of the model, and the memory a draft model takes beside it."""

from dataclasses import dataclass, replace

from solver.deployment.configuration import Configuration, Speculation
from solver.deployment.deploy import Deployed
from solver.deployment.layout_rules import layout_problem
from solver.errors import DoesNotFitError, UnsupportedError
from solver.lengths import Lengths
from solver.llm_shape import LlmShape
from solver.memory.fits import MemoryPlan, context_limit, engine_memory, max_concurrent_requests
from solver.memory.kv_cache import RequestCache, request_cache
from solver.memory.weights import stage_weight_bytes
from solver.step.constants import Constants
from solver.step.rates import compute_dtype
from solver.workload import SpeculativeDecoding


@dataclass(frozen=True, slots=True)
class DraftModel:
    """A smaller model that drafts, on the served model's devices in its layout. constants: of the device, for this model."""

    shape: LlmShape
    weights: str
    constants: Constants


@dataclass(frozen=True, slots=True)
class DraftMemory:
    """Bytes per device of a draft model: its weights, and its part of the cache."""

    weights_bytes: float
    kv_cache_bytes: float


def deploy_speculative(
    deployed: Deployed, decoding: SpeculativeDecoding, draft: DraftModel | None, replies: Lengths, mean_context: float
) -> tuple[Deployed, DraftMemory | None]:
    """The same deployment drafting. mean_context: tokens of a mean request, for how many fit at once.

    Raises UnsupportedError for drafts that cannot work, DoesNotFitError where the draft model leaves no room.
    """
    check_draft_length(decoding, replies.maximum)
    plain = deployed.configuration
    if draft is None:
        return replace(deployed, configuration=replace(plain, speculation=Speculation(decoding))), None
    check_draft_model(plain, draft)
    block_tokens = engine_memory(plain.constants.subject, plain.constants.values_si(), ()).block_tokens
    precision = replace(plain.precision, weights=draft.weights)
    cache = request_cache(draft.shape, precision.kv_cache, plain.layout.tensor_parallel, block_tokens=block_tokens)
    weights = stage_weight_bytes(
        draft.shape, draft.weights, plain.layout, layers_fraction=1.0, embedding=True, head=True
    )
    context = min(context_limit(plain.shape, plain.engine), draft.shape.max_context_tokens)
    plan, beside = memory_with_draft(deployed.memory, weights, cache, context, plain.engine.max_batched_tokens)
    tokens = float(plan.kv_cache_tokens)
    configuration = replace(
        plain,
        kv_cache_tokens=tokens,
        speculation=Speculation(
            decoding,
            replace(plain, shape=draft.shape, constants=draft.constants, precision=precision, kv_cache_tokens=tokens),
        ),
    )
    copies = plain.layout.data_parallel
    seats = min(max_concurrent_requests(plan, mean_context), plain.engine.max_sequences) * copies
    return Deployed(configuration, plan, seats), beside


def check_draft_length(decoding: SpeculativeDecoding, replies: int) -> None:
    """Raises UnsupportedError where more tokens are drafted than the longest reply has after its first."""
    if decoding.draft_tokens >= replies:
        raise UnsupportedError(
            "draft_longer_than_output",
            f"{decoding.draft_tokens} tokens are drafted a step, and the longest reply has {replies}: "
            f"draft at most {max(replies - 1, 0)}",
        )


def check_draft_model(plain: Configuration, draft: DraftModel) -> None:
    """Raises UnsupportedError: the draft model cannot be laid out like the served one or multiplied on the device, is cut
    into pipeline stages, or has another vocabulary, so that its tokens mean something else."""
    compute_dtype(plain.device, draft.weights)
    problem = layout_problem(draft.shape, plain.layout, weights=draft.weights)
    if problem is not None:
        raise UnsupportedError(problem.reason, f"draft model {draft.shape.id}: {problem.message}")
    if plain.layout.pipeline_parallel > 1:
        raise UnsupportedError(
            "draft_model_in_pipeline",
            "how a draft model runs across pipeline stages is not modelled: state pipeline_parallel 1, or what "
            "drafting costs",
        )
    if draft.shape.vocabulary != plain.shape.vocabulary:
        raise UnsupportedError(
            "draft_vocabulary_differs",
            f"{draft.shape.id} has a vocabulary of {draft.shape.vocabulary} tokens, {plain.shape.id} one of "
            f"{plain.shape.vocabulary}: what one drafts the other cannot verify",
        )


def memory_with_draft(
    plan: MemoryPlan, weights_bytes: float, cache: RequestCache, context: int, max_batched_tokens: int
) -> tuple[MemoryPlan, DraftMemory]:
    """The served model's plan with a draft model beside it.

    The draft's weights leave less for the cache, and every token is cached by both models:

        tokens = (pool − draft weights) / (bytes of one request, served + draft) · context

    The step's work space is shared: the served model's is enough for both. Raises DoesNotFitError where not one
    request of ``context`` tokens is left room for.
    """
    own = plan.cache.admission_bytes(context, max_batched_tokens)
    both = own + cache.admission_bytes(context, max_batched_tokens)
    pool = plan.kv_cache_bytes - weights_bytes
    if pool < both:
        used = plan.weights_bytes + plan.activations_bytes + plan.reserved_bytes
        raise DoesNotFitError(used + weights_bytes + both, used + plan.kv_cache_bytes)
    kept, tokens = pool, plan.kv_cache_tokens
    if both > 0:
        kept, tokens = pool * own / both, int(pool / both * context)
    return replace(plan, kv_cache_bytes=kept, kv_cache_tokens=tokens), DraftMemory(weights_bytes, pool - kept)
