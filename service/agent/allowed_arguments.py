"""Which engine arguments the service may ask this host for.

A wanted measurement comes over the network, and an engine's command line can make it run code from a repository, load
files or open its port: only options that change speed, each with a value of the right kind, are passed on. The person
at the host can allow others by name (``--allow-argument``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from service.agent.launch import LaunchError

_FLAG = re.compile(r"")
_COUNT = re.compile(r"[0-9]{1,12}")
_SHARE = re.compile(r"(?:0?\.[0-9]{1,6}|0|1|1\.0{0,6})")
_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")


def _one_of(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, names)))


ALLOWED: Mapping[str, re.Pattern[str]] = {
    "--max-num-seqs": _COUNT, "--max-num-batched-tokens": _COUNT, "--max-model-len": _COUNT, "--block-size": _COUNT,
    "--max-num-partial-prefills": _COUNT, "--max-long-partial-prefills": _COUNT, "--num-scheduler-steps": _COUNT,
    "--long-prefill-token-threshold": _COUNT, "--max-seq-len-to-capture": _COUNT, "--max-cudagraph-capture-size": _COUNT,
    "--stream-interval": _COUNT, "--api-server-count": _COUNT,
    "--tensor-parallel-size": _COUNT, "--pipeline-parallel-size": _COUNT, "--data-parallel-size": _COUNT,
    "--seed": _COUNT, "--gpu-memory-utilization": _SHARE, "--swap-space": _AMOUNT, "--cpu-offload-gb": _AMOUNT,
    "--enable-chunked-prefill": _FLAG, "--no-enable-chunked-prefill": _FLAG, "--enable-prefix-caching": _FLAG,
    "--no-enable-prefix-caching": _FLAG, "--enforce-eager": _FLAG, "--enable-expert-parallel": _FLAG,
    "--async-scheduling": _FLAG, "--no-async-scheduling": _FLAG, "--disable-custom-all-reduce": _FLAG,
    "--disable-cascade-attn": _FLAG, "--disable-log-requests": _FLAG, "--disable-log-stats": _FLAG,
    "--language-model-only": _FLAG,
    "--kv-cache-dtype": _one_of("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"),
    "--dtype": _one_of("auto", "half", "float16", "bfloat16", "float", "float32"),
    "--quantization": _one_of(
        "fp8", "awq", "awq_marlin", "gptq", "gptq_marlin", "compressed-tensors", "bitsandbytes", "modelopt",
        "modelopt_fp4", "mxfp4", "fbgemm_fp8",
    ),
    "--scheduling-policy": _one_of("fcfs", "priority"),
    "--distributed-executor-backend": _one_of("mp"),
}  # fmt: skip
"""vLLM's options by their whole names (it would take abbreviations), each with the values it may have."""

_OPTION = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.\-]*")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,95}(?:/[A-Za-z0-9][A-Za-z0-9_.\-]{0,95})?")
_MEASUREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}")


def checked_arguments(arguments: Sequence[str], allowed_here: Collection[str] = ()) -> list[str]:
    """The arguments as they may be passed on; ``allowed_here``: further options, which take any value.

    Raises LaunchError naming every argument that is refused, and how to allow it.

    >>> checked_arguments(["--max_num_seqs=64", "--enforce-eager"])
    ['--max-num-seqs=64', '--enforce-eager']
    """
    more = {_named(name) for name in allowed_here}
    passed: list[str] = []
    refused: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        name = _named(name)
        if not equals and words and not words[0].startswith("-") and ALLOWED.get(name) is not _FLAG:
            value, equals = words.pop(0), " "
        shown = f"{word} {value}" if equals == " " else word
        pattern = ALLOWED.get(name)
        if not _OPTION.fullmatch(name):
            refused.append(shown)
        elif name in more:
            passed += [name] if not equals else [f"{name}={value}"]
        elif pattern is None or (equals and pattern is _FLAG) or not pattern.fullmatch(value):
            refused.append(shown)
        else:
            passed.append(name if pattern is _FLAG else f"{name}={value}")
    if refused:
        listed = ", ".join(repr(one[:80]) for one in refused[:10])
        raise LaunchError(
            f"refused engine arguments of the service: {listed}; this host passes on only performance options"
            " (docs/agent.md), and others by --allow-argument NAME"
        )
    return passed


def checked_model(name: object) -> str:
    """A Hugging Face id or a catalog id: no option, no path, no address. Raises LaunchError."""
    if not isinstance(name, str) or not _MODEL.fullmatch(name) or ".." in name:
        raise LaunchError(f"refused the model {str(name)[:80]!r} of the service: not a Hugging Face id; give --model")
    return name


def checked_id(name: object) -> str:
    """A measurement's id, which names a log file. Raises LaunchError."""
    if not isinstance(name, str) or not _MEASUREMENT.fullmatch(name):
        raise LaunchError(f"refused the measurement {str(name)[:80]!r}: not an id")
    return name


def _named(option: str) -> str:
    """As vLLM reads it: underscores in names are dashes."""
    return "--" + option.removeprefix("--").replace("_", "-") if option.startswith("--") else option
