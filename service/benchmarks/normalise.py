"""Complete a run: what the file says, what the context says, and which of the two is missing or contradicted.

The context wins, because the uploader knows the machine; a contradiction is told, and quarantines the run. Nothing is
assumed except what is forced: a single device has every degree of parallelism 1.
"""

import re
from dataclasses import dataclass

from service.benchmarks.engine_arguments import read_arguments
from service.benchmarks.known import KnownNames
from service.benchmarks.reading import FileFacts, Reading
from service.problems import FieldError, InvalidFieldsError
from service.wire.benchmarks import (
    BenchmarkContext,
    BenchmarkUpload,
    ImportContext,
    MeasuredEngine,
    MeasuredLayout,
    MeasuredPrecision,
)
from service.wire.device_names import match_device
from solver.precision import WEIGHT_FORMATS

DEFAULT_KV_CACHE = "bf16"
"""The KV cache format taken when none is stated, as for estimates; it is echoed in the stored result."""
_VARIANTS = {"instruct", "chat", "it", "hf", "meta", "fp8", "awq", "gptq", "w8a8", "w4a16", "int4", "nvfp4", "mxfp4",
             "dynamic", "bf16", "gguf"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Completed:
    """A canonical run, what its file contradicts, what the tool itself objects to, and what was derived."""

    tool: str
    upload: BenchmarkUpload
    contradictions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def complete(reading: Reading, context: ImportContext, known: KnownNames) -> Completed:
    """The run in canonical form. Raises InvalidFieldsError naming every fact that neither file nor context states."""
    facts = reading.facts
    contradictions = list(reading.objections)
    missing: list[FieldError] = []

    device = context.device or (match_device(facts.device_name, known.device_memory_gib) if facts.device_name else None)
    if device is None:
        missing.append(_missing("device", facts.device_name))
    llm = context.llm or llm_named(facts.llm_name, known)
    if llm is None:
        missing.append(_missing("llm", facts.llm_name))
    devices = context.devices or facts.devices
    if devices is None:
        missing.append(_missing("devices", None))
    engine = context.engine or _engine(facts)
    if engine is None:
        missing.append(_missing("engine", None))
    if device is None or llm is None or devices is None or engine is None:
        raise InvalidFieldsError(missing)

    contradictions += _contradictions(facts, device, devices, llm, engine, known)
    layout, precision = _stated(facts, context, engine, contradictions)
    power_known = facts.power_w_mean is not None and facts.power_devices == devices
    power_w_mean = context.power_w_mean
    if power_w_mean is None and power_known:
        power_w_mean = facts.power_w_mean
    full = BenchmarkContext(
        **context.model_dump(
            exclude={"device", "devices", "llm", "engine", "layout", "precision", "power_w_mean", "measured_at"}
        ),
        device=device,
        devices=devices,
        llm=llm,
        engine=engine,
        layout=layout,
        precision=precision,
        power_w_mean=power_w_mean,
        measured_at=context.measured_at or facts.measured_at,
    )
    upload = BenchmarkUpload(context=full, load=reading.load, traffic=reading.traffic, results=reading.results)
    return Completed(reading.tool, with_forced_defaults(upload), tuple(contradictions), reading.notes)


def with_forced_defaults(upload: BenchmarkUpload) -> BenchmarkUpload:
    """Layout and precision completed from the engine's arguments and from what is forced.

    Raises InvalidFieldsError when the layout of several devices is not stated or does not multiply to their number,
    or when the format of the weights is unknown.
    """
    context = upload.context
    stated = read_arguments(context.engine.arguments)
    layout, devices = context.layout, context.devices
    degrees = {
        name: getattr(layout, name) or getattr(stated, name)
        for name in ("tensor_parallel", "pipeline_parallel", "data_parallel")
    }
    errors = []
    if devices > 1 and not any(degrees.values()):
        errors.append(
            FieldError(
                f"{devices} devices: state tensor_parallel, pipeline_parallel and data_parallel, here or in "
                "engine.arguments",
                pointer="/context/layout",
            )
        )
    product = 1
    for degree in degrees.values():
        product *= degree or 1
    if not errors and product != devices:
        shown = " × ".join(f"{name} {degree or 1}" for name, degree in degrees.items())
        errors.append(FieldError(f"{shown} uses {product} devices, devices is {devices}", pointer="/context/layout"))
    weights = context.precision.weights or stated.weights
    if weights is None:
        errors.append(
            FieldError("the file does not state the format of the weights", pointer="/context/precision/weights")
        )
    if errors:
        raise InvalidFieldsError(errors)
    full_layout = MeasuredLayout(
        **{name: degree or 1 for name, degree in degrees.items()}, expert_parallel=layout.expert_parallel or 1
    )
    kv_cache = context.precision.kv_cache or stated.kv_cache or DEFAULT_KV_CACHE
    full_precision = MeasuredPrecision.model_validate({"weights": weights, "kv_cache": kv_cache})
    return upload.model_copy(
        update={"context": context.model_copy(update={"layout": full_layout, "precision": full_precision})}
    )


def llm_named(name: str | None, known: KnownNames) -> str | None:
    """The catalog model that a tool's model name means: an id, a Hugging Face id, or a tuned variant of one.

    >>> llm_named("meta-llama/Llama-3.1-8B-Instruct", KnownNames({}, {"llama-3.1-8b": "meta-llama/Llama-3.1-8B"}))
    'llama-3.1-8b'
    """
    if not name:
        return None
    if name in known.hugging_face_ids:
        return name
    wanted = _stem(name)
    found = {
        llm_id
        for llm_id, hugging_face_id in known.hugging_face_ids.items()
        if wanted == _stem(llm_id) or (hugging_face_id and wanted == _stem(hugging_face_id))
    }
    return found.pop() if len(found) == 1 else None


def _stem(name: str) -> str:
    """A model's name without publisher, tuning and quantisation."""
    words = re.split(r"[-_ ]", name.rsplit("/", 1)[-1].lower().removesuffix(".gguf"))
    return "-".join(word for word in words if word and word not in _VARIANTS and not re.fullmatch(r"\d{4}", word))


def _engine(facts: FileFacts) -> MeasuredEngine | None:
    if facts.engine_name is None:
        return None
    return MeasuredEngine(name=facts.engine_name, version=facts.engine_version, arguments=facts.engine_arguments)


def _missing(name: str, said: str | None) -> FieldError:
    why = f"the file says {said!r}, which is not in the catalog" if said else "the file does not state it"
    return FieldError(f"{name} is needed: {why}", pointer=f"/context/{name}")


def _stated(
    facts: FileFacts, context: ImportContext, engine: MeasuredEngine, contradictions: list[str]
) -> tuple[MeasuredLayout, MeasuredPrecision]:
    """Context first, then the engine's arguments (read again later), then the file."""
    layout = {}
    by_arguments = read_arguments(engine.arguments)
    for name in ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel"):
        given, said = getattr(context.layout, name), getattr(facts, name)
        given = given or getattr(by_arguments, name, None)
        layout[name] = given or said
        if given and said and given != said:
            contradictions.append(f"the file says {name} {said}, the context says {given}")
    given_weights = context.precision.weights or by_arguments.weights
    if given_weights and facts.weights and given_weights != facts.weights:
        contradictions.append(f"the file says weights in {facts.weights}, the context says {given_weights}")
    weights = given_weights or facts.weights
    kv_cache = context.precision.kv_cache or by_arguments.kv_cache or facts.kv_cache
    if weights is not None and weights not in WEIGHT_FORMATS:
        detail = f"the file says {weights!r}; known formats are {', '.join(WEIGHT_FORMATS)}"
        raise InvalidFieldsError([FieldError(detail, pointer="/context/precision/weights")])
    return MeasuredLayout(**layout), MeasuredPrecision.model_validate({"weights": weights, "kv_cache": kv_cache})


def _contradictions(
    facts: FileFacts, device: str, devices: int, llm: str, engine: MeasuredEngine, known: KnownNames
) -> list[str]:
    """What the file names differently from what was taken. Names the catalog does not know contradict nothing."""
    found = []
    named = match_device(facts.device_name, known.device_memory_gib) if facts.device_name else None
    if named is not None and named != device:
        found.append(f"the file names the device {facts.device_name!r} ({named}), the context says {device}")
    if facts.devices is not None and facts.devices != devices:
        found.append(f"the file counts {facts.devices} devices, the context says {devices}")
    model = llm_named(facts.llm_name, known)
    if model is not None and model != llm:
        found.append(f"the file names the model {facts.llm_name!r} ({model}), the context says {llm}")
    if facts.engine_name is not None and facts.engine_name != engine.name:
        found.append(f"the file names the engine {facts.engine_name}, the context says {engine.name}")
    return found
