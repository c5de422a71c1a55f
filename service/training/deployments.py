"""GET /v1/training/recommendations/{id}/deployments: files that start a stored plan's jobs. A pure function of the plan.

Options as each project documents them, read on 2026-11-24 (which, and where: tests/fixtures/training/documented_options.toml): TRL
trl/scripts/dpo.py @00bb368845b6, trl/trainer/model_config.py @f2cd57710 and docs/source/dpo_trainer.md; Megatron-LM
examples/llama/train_llama3_8b_h100_fp8.sh @157006d6d9bf, Megatron Core's user guide (Megatron FSDP, low precision training) and its
argument list @d98e8a64dd; TorchTitan torchtitan/config/job_config.py @000204a4a8bf; SkyPilot's YAML reference and its guide to
multi-node jobs; Hugging Face src/transformers/training_args.py @00349ae87edd (what the command line may say, and that FSDP
recomputes layers by ``activation_checkpointing``); PyTorch torch/distributed/run.py @010929fd3f40; SLURM's manual page of sbatch
@284c3b95f0.
"""

import math
from collections.abc import Callable, Mapping

from sqlmodel import Session

from service import VERSION
from service.deployments.words import shell_command, yaml_documents
from service.llms.queries import llms_by_ids
from service.problems import ConflictError, FieldError, InvalidFieldsError
from service.recommendations.from_rows import llm_from_row
from service.training.present import present_stored
from service.training.said import PAIR_SEQUENCES
from service.training.started import MEGATRON, TORCHTITAN, TRL, Started, notes_of, usual_programme
from service.training.why_not import stored_plan
from service.wire.deployments import DeploymentFileOut, DeploymentNoteOut
from service.wire.tco import HOURS_PER_DAY
from service.wire.training_plans import (
    TrainingDeploymentOut,
    TrainingLineOut,
    TrainingRecommendationIn,
)

PORT = 29_500
DATA, OUTPUT, RATE = "$DATA", "$OUTPUT", "$LEARNING_RATE"
SKYPILOT_CLOUDS = {
    "aws": "aws",
    "azure": "azure",
    "gcp": "gcp",
    "lambda": "lambda",
    "nebius": "nebius",
    "runpod": "runpod",
}
"""Providers by the names that SkyPilot has for them."""
TORCHTITAN_FLAVORS = {"llama-3.1-8b": "8B", "llama-3.1-70b": "70B", "llama-3.1-405b": "405B"}
"""Models by the flavors of TorchTitan's ``llama3`` (torchtitan/models/llama3/__init__.py); without one it trains a toy model."""
SIXTEEN_BITS = ["--bf16", "--grad-reduce-in-bf16"]
MEGATRON_FORMATS: Mapping[str, list[str]] = {
    "bf16": SIXTEEN_BITS,
    "fp16": ["--fp16"],
    "fp8": [*SIXTEEN_BITS, "--fp8-format", "hybrid", "--fp8-param-gather"],
    "mxfp8": [*SIXTEEN_BITS, "--fp8-format", "e4m3", "--fp8-recipe", "mxfp8"],
    "nvfp4": [*SIXTEEN_BITS, "--fp4-format", "e2m1"],
}
TORCHTITAN_FORMATS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "bf16": {},
    "fp8": {"model": {"converters": ["float8"]}, "float8": {"enable_fsdp_float8_all_gather": True}},
    "mxfp8": {"model": {"converters": ["mx"]}, "mx": {"recipe_name": "mxfp8"}},
}
TRAINER_FORMATS: Mapping[str, list[str]] = {"bf16": ["--bf16", "true"], "fp16": ["--fp16", "true"]}
"""Precisions of products by what each programme is told of them; another one is refused."""
SPOT = ":spot"
"""How offers end whose machines may be taken back."""


def answer_training_deployment(session: Session, plan_id: str, target: str) -> TrainingDeploymentOut:
    """Raises NotFoundError, InvalidFieldsError for an unknown target, ConflictError where there is no plan or the target
    cannot say it.
    """
    if target not in TARGETS:
        raise InvalidFieldsError([FieldError(f"no target {target[:80]!r}: {', '.join(TARGETS)}", parameter="target")])
    row = stored_plan(session, plan_id)
    found = present_stored(row)
    if not found.plan:
        raise ConflictError(f"{row.id} is {found.outcome}: it has no plan to start")
    asked = TrainingRecommendationIn.model_validate(row.request)
    llms = {one.id: one.row for one in llms_by_ids(session, {job.llm for job in asked.jobs})}
    jobs = {job.name: job for job in asked.jobs}
    files, notes = dict[str, str](), dict[str, str]()
    for line in found.plan:
        job = jobs[line.job]
        if job.llm not in llms:
            raise ConflictError(f"the catalog has no {job.llm} any more")
        started = Started(
            job, line, llm_from_row(llms[job.llm]), llms[job.llm].get("hugging_face_id"), line.sequence_tokens,
            line.global_batch_sequences,
        )  # fmt: skip
        files |= TARGETS[target](started)
        notes |= notes_of(started, STARTS.get(target) or usual_programme(line.stack))
    return TrainingDeploymentOut(
        recommendation=row.id,
        target=target,
        generator_version=VERSION,
        files=[DeploymentFileOut(path=path, content=content) for path, content in files.items()],
        notes=[DeploymentNoteOut(about=about, text=text) for about, text in notes.items()],
    )


def _checked_format(started: Started, formats: Mapping[str, object], programme: str) -> str:
    """Its precision. Raises ConflictError for one that the programme's options, as they were read, do not say."""
    precision = started.job.precision
    if precision not in formats:
        raise ConflictError(
            f"{started.job.name}: {programme} has no option for {precision}; it has {', '.join(formats)}"
        )
    return precision


def _torchrun_words(started: Started) -> list[str]:
    layout = started.line.layout
    one_queue = (
        layout.tensor_parallel * layout.context_parallel > 1
    )  # so that collectives start before the products beside them
    words = ["env", "CUDA_DEVICE_MAX_CONNECTIONS=1"] if one_queue else []
    words += ["torchrun", "--nnodes", str(started.line.nodes), "--nproc-per-node", str(started.devices_a_node)]
    if started.line.nodes == 1:
        return [*words, "--standalone"]
    return [*words, "--rdzv-backend", "c10d", "--rdzv-id", started.name, "--rdzv-endpoint", f"$HEAD:{PORT}"]


def _command(words: list[str]) -> str:
    """One line of shell; the variables in it are expanded."""
    line = shell_command(words)
    for variable in (DATA, OUTPUT, RATE, f"$HEAD:{PORT}"):
        line = line.replace(f"'{variable}'", f'"{variable}"')
    return line


def _trl(started: Started) -> list[str]:
    """TRL's supervised fine-tuning, or its preference tuning, whose options are those of the Hugging Face Trainer. A preference
    is one sample of its batch.
    """
    layout, method, trains = started.line.layout, started.job.method, started.job.trains
    if layout.tensor_parallel * layout.pipeline_parallel * layout.context_parallel * layout.expert_parallel > 1:
        raise ConflictError(
            f"{started.job.name}: its layout splits the model, which the Trainer does not; take megatron or torchtitan"
        )
    of_a_sample = PAIR_SEQUENCES if method == "dpo" else 1
    wrapped = layout.sharding == "zero3" and started.line.devices > 1
    words = [
        "-m", f"trl.scripts.{'dpo' if method == 'dpo' else 'sft'}",
        "--model_name_or_path", started.hub or started.job.llm, "--dataset_name", DATA,
        "--output_dir", OUTPUT, "--max_length", str(started.sequence_tokens),
        "--per_device_train_batch_size", str(layout.micro_batch_sequences // of_a_sample),
        "--gradient_accumulation_steps", str(started.accumulated), "--max_steps", str(started.steps),
        "--gradient_checkpointing", "true" if layout.recompute == "full" and not wrapped else "false",
        "--include_num_input_tokens_seen", "all", "--logging_steps", "10",
        *TRAINER_FORMATS[_checked_format(started, TRAINER_FORMATS, "the Trainer")],
    ]  # fmt: skip
    if method != "dpo":
        words += ["--packing", "true"]
    elif started.job.reference == "precomputed":
        words += ["--precompute_ref_log_probs", "true"]
    if trains in ("lora", "qlora"):
        # As predicted: weights that are not trained at 16 bits (TRL loads 32), adapters on every matrix of the layers (PEFT: on some).
        words += ["--dtype", "float16" if started.job.precision == "fp16" else "bfloat16"]
        words += ["--use_peft", "--lora_r", str(started.job.adapter_rank or 16), "--lora_target_modules", "all-linear"]
    if trains == "qlora":
        words += ["--load_in_4bit", "--bnb_4bit_quant_type", "nf4"]
    if wrapped:
        words += ["--fsdp", "full_shard auto_wrap"]
        if layout.recompute == "full":  # by FSDP itself: the Trainer's own way gathers the weights once more
            words += ["--fsdp_config", '{"activation_checkpointing": true}']
    return words


def _megatron(started: Started) -> list[str]:
    """Megatron-LM's ``pretrain_gpt.py``."""
    layout, shape = started.line.layout, started.shape
    if started.job.method not in ("pretrain", "full"):
        raise ConflictError(f"{started.job.name}: pretrain_gpt.py trains no adapters and no preferences; take torchrun")
    full = [group for group in shape.attention if group.kind == "full"]
    dense = [group for group in shape.feed_forward if group.intermediate]
    if len(full) != 1 or len(shape.attention) != 1 or len(dense) != 1 or len(shape.feed_forward) != 1:
        raise ConflictError(f"{started.job.name}: layers of {shape.id} differ; state them to Megatron yourself")
    attention, feed_forward = full[0], dense[0]
    words = [
        "pretrain_gpt.py", "--use-mcore-models", "--transformer-impl", "transformer_engine",
        "--num-layers", str(shape.layers), "--hidden-size", str(shape.hidden),
        "--ffn-hidden-size", str(feed_forward.intermediate), "--num-attention-heads", str(attention.heads),
        "--group-query-attention", "--num-query-groups", str(attention.kv_heads), "--kv-channels", str(attention.head_dim),
        "--seq-length", str(started.sequence_tokens), "--max-position-embeddings", str(started.sequence_tokens),
        "--position-embedding-type", "rope", "--normalization", "RMSNorm", "--disable-bias-linear",
        "--micro-batch-size", str(layout.micro_batch_sequences), "--global-batch-size", str(started.global_batch_sequences),
        "--train-iters", str(started.steps), "--tensor-model-parallel-size", str(layout.tensor_parallel),
        "--pipeline-model-parallel-size", str(layout.pipeline_parallel),
        "--context-parallel-size", str(layout.context_parallel), "--use-distributed-optimizer", "--overlap-grad-reduce",
        "--overlap-param-gather", "--log-throughput", "--log-interval", "10",
        "--lr", RATE, "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", started.hub or started.job.llm,
        "--data-path", DATA, "--save", OUTPUT, "--load", OUTPUT, "--save-interval", "500",
    ]  # fmt: skip
    words += ["--swiglu"] if feed_forward.gated else []
    words += [] if shape.tied_embeddings else ["--untie-embeddings-and-output-weights"]
    words += ["--sequence-parallel"] if layout.tensor_parallel > 1 else []
    parts = layout.pipeline_parallel * layout.virtual_pipeline
    counted = bool(shape.layers % parts) and not (shape.layers + 2) % parts
    if counted:  # the embedding and the loss take a layer's place each
        words += ["--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"]
    if layout.virtual_pipeline > 1:
        a_part = (shape.layers + 2 * counted) // parts
        words += ["--num-layers-per-virtual-pipeline-stage", str(max(a_part, 1))]
    if layout.recompute == "full":
        again = max(1, round(layout.recomputed_layers_fraction * shape.layers / layout.pipeline_parallel))
        words += [
            "--recompute-granularity",
            "full",
            "--recompute-method",
            "block",
            "--recompute-num-layers",
            str(again),
        ]
    elif layout.recompute == "selective":
        words += ["--recompute-granularity", "selective"]
    if layout.sharding == "zero3":
        words += ["--use-megatron-fsdp", "--data-parallel-sharding-strategy", "optim_grads_params"]
        words += ["--no-gradient-accumulation-fusion", "--ckpt-format", "fsdp_dtensor"]
    return words + MEGATRON_FORMATS[_checked_format(started, MEGATRON_FORMATS, "Megatron")]


def _torchtitan(started: Started) -> str:
    """A configuration file of TorchTitan."""
    layout, line = started.line.layout, started.line
    if started.job.method not in ("pretrain", "full"):
        raise ConflictError(f"{started.job.name}: TorchTitan trains no adapters and no preferences; take torchrun")
    flavor = TORCHTITAN_FLAVORS.get(started.job.llm)
    if flavor is None:
        raise ConflictError(f"{started.job.name}: TorchTitan has no flavor of {started.job.llm} that is known here")
    sharded = layout.sharding == "zero3"
    parts = layout.pipeline_parallel * layout.virtual_pipeline
    interleaved: dict[str, object] = {}
    if layout.virtual_pipeline > 1:
        interleaved = {
            "pipeline_parallel_schedule": "Interleaved1F1B",
            "pipeline_parallel_layers_per_stage": max(1, started.shape.layers // parts),
        }
    formats = TORCHTITAN_FORMATS[_checked_format(started, TORCHTITAN_FORMATS, "TorchTitan")]
    tables: Mapping[str, Mapping[str, object]] = {
        "job": {"description": f"{started.job.llm} on {line.devices} x {line.device}", "dump_folder": "outputs"},
        "model": {"name": "llama3", "flavor": flavor, **formats.get("model", {})},
        "training": {
            "local_batch_size": layout.micro_batch_sequences
            * (started.accumulated if layout.pipeline_parallel > 1 else 1),
            "global_batch_size": started.global_batch_sequences,
            "seq_len": started.sequence_tokens,
            "steps": started.steps,
        },
        "parallelism": {
            "data_parallel_replicate_degree": 1 if sharded else layout.data_parallel,
            "data_parallel_shard_degree": layout.data_parallel if sharded else 1,
            "tensor_parallel_degree": layout.tensor_parallel,
            "pipeline_parallel_degree": layout.pipeline_parallel,
            "pipeline_parallel_microbatch_size": layout.micro_batch_sequences,
            "context_parallel_degree": layout.context_parallel,
            "expert_parallel_degree": layout.expert_parallel,
            **interleaved,
        },
        "checkpoint": {"enable_checkpoint": True, "interval": 500},
        "activation_checkpoint": {"mode": layout.recompute},
        "metrics": {"log_freq": 10},
        **{table: values for table, values in formats.items() if table != "model"},
    }
    return "\n".join(
        f"[{table}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())
        for table, values in tables.items()
    )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return str(value) if isinstance(value, int) else f'"{value}"'


def _torchtitan_words(config: str) -> list[str]:
    """Paths are given on the command line, where the shell fills them in."""
    return [
        "-m", "torchtitan.train", "--job.config_file", config, "--job.dump_folder", OUTPUT, "--training.dataset_path", DATA,
    ]  # fmt: skip


def _script(started: Started, words: list[str]) -> str:
    head = [f"# {started.job.name}: {started.line.nodes} x {started.line.offer}, {started.line.devices} devices"]
    if started.line.nodes > 1:
        head.append("# run it on every node; HEAD is the first one's address")
    return "\n".join(["#!/bin/sh", "set -eu", *head, _command([*_torchrun_words(started), *words]), ""])


def _torchrun_files(started: Started) -> dict[str, str]:
    return {f"{started.name}.sh": _script(started, _trl(started))}


def _megatron_files(started: Started) -> dict[str, str]:
    return {f"{started.name}.sh": _script(started, _megatron(started))}


def _torchtitan_files(started: Started) -> dict[str, str]:
    config = f"{started.name}.toml"
    words = _torchtitan_words(config)
    return {config: _torchtitan(started), f"{started.name}.sh": _script(started, words)}


def _usual_words(started: Started) -> tuple[list[str], dict[str, str]]:
    """What the plan's own software is started with, and the files beside it."""
    programme = usual_programme(started.line.stack)
    if programme == MEGATRON:
        return _megatron(started), {}
    if programme == TORCHTITAN:
        config = f"{started.name}.toml"
        return _torchtitan_words(config), {config: _torchtitan(started)}
    return _trl(started), {}


def _slurm_files(started: Started) -> dict[str, str]:
    words, beside = _usual_words(started)
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={started.name}",
        f"#SBATCH --nodes={started.line.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={started.devices_a_node}",
        "#SBATCH --exclusive",
        "#SBATCH --requeue",
        *_time_limit(started.line),
        "set -eu",
        'export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f"srun {_command([*_torchrun_words(started), *words])}",
        "",
    ]
    return {f"{started.name}.sbatch": "\n".join(lines)} | beside


def _time_limit(line: TrainingLineOut) -> list[str]:
    """Until the slow end of its interval, in whole hours: a partition's own limit may be shorter than the job. None for one that stops
    each day."""
    days, hours = divmod(math.ceil(line.duration_days.high * HOURS_PER_DAY), HOURS_PER_DAY)
    return [] if line.daily_hours else [f"#SBATCH --time={days}-{hours:02d}:00:00"]


def _skypilot_files(started: Started) -> dict[str, str]:
    line = started.line
    cloud = SKYPILOT_CLOUDS.get(line.provider)
    if cloud is None:
        raise ConflictError(f"{started.job.name}: what SkyPilot calls {line.provider} is not known here")
    words, beside = _usual_words(started)
    machines = {"infra": cloud, "accelerators": f"{_sky_device(line.device)}:{started.devices_a_node}"}
    task = {
        "name": started.name,
        "num_nodes": line.nodes,
        "resources": machines | ({"use_spot": True} if line.offer.endswith(SPOT) else {}),
        "envs": {"DATA": "", "OUTPUT": "", "LEARNING_RATE": ""},
        "run": 'export HEAD=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)\n'
        + _command([*_torchrun_words(started), *words])
        + "\n",
    }
    return {f"{started.name}.sky.yaml": yaml_documents([task])} | beside


def _sky_device(device: str) -> str:
    """SkyPilot's name of an accelerator.

    >>> _sky_device("h100-sxm"), _sky_device("a100-sxm-80"), _sky_device("l40s")
    ('H100', 'A100-80GB', 'L40S')
    """
    base, _, rest = device.partition("-")
    return f"{base.upper()}-80GB" if base == "a100" and rest.endswith("80") else base.upper()


STARTS = {"torchrun": TRL, "torchtitan": TORCHTITAN, "megatron": MEGATRON}
"""What a target starts; others start the plan's own software."""
TARGETS: Mapping[str, Callable[[Started], dict[str, str]]] = {
    "torchrun": _torchrun_files,
    "torchtitan": _torchtitan_files,
    "megatron": _megatron_files,
    "slurm": _slurm_files,
    "skypilot": _skypilot_files,
}
