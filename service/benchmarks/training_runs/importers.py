"""Logs of training programmes → what they measured. Pure: text in, figures out.

Shapes, as each project documents and writes them: TorchTitan's metrics line (docs/metrics.md), Megatron-LM's line of
``training_log`` and its memory report, and what the Hugging Face ``Trainer`` prints and saves at the end of ``train``.
"""

import ast
import json
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service.benchmarks.reading_error import ReadingError

WARM_UP_LINES = 2
"""First logged steps that are left out where as many others follow: they compile and fill caches."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
MIB_PER_GIB = 1024.0
MS_PER_S = 1000.0


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """One of the two rates. steps: how many logged ones the figure is the median of. global_batch_sequences: where the log says it."""

    tokens_per_s_per_device: float | None = None
    tokens_per_s: float | None = None
    step_s: float | None = None
    peak_memory_gib: float | None = None
    steps: int | None = None
    global_batch_sequences: int | None = None


def read_torchtitan(text: str) -> LoggedRun:
    """Tokens a second and device (``tps``) and the peak of reserved memory of each logged step.

    >>> read_torchtitan("step: 10  loss: 8.1  memory: 47.29GiB(59.70%)  tps: 5,762  tflops: 298.0  mfu: 30.14%").tokens_per_s_per_device
    5762.0
    """
    plain = COLOURS.sub("", text)
    lines = [line for line in plain.splitlines() if re.search(r"\bstep:\s*\d", line)]
    rates = _steady([float(m[1].replace(",", "")) for line in lines if (m := re.search(r"\btps:\s*([\d,.]+)", line))])
    if not rates:
        raise ReadingError("/log/content", "no line of a step with its tps; TorchTitan logs 'step: 10 … tps: 5,762'")
    peaks = [float(m[1]) for line in lines if (m := re.search(r"\bmemory:\s*([\d.]+)GiB", line))]
    return LoggedRun(
        tokens_per_s_per_device=statistics.median(rates), peak_memory_gib=max(peaks, default=None), steps=len(rates)
    )


def read_megatron(text: str) -> LoggedRun:
    """Milliseconds of each logged iteration, its batch, and the most memory any reporting rank reserved.

    >>> read_megatron(" iteration 20/ 100 | elapsed time per iteration (ms): 5813.3 | global batch size:   512 | lm loss: 7.0").step_s
    5.8133
    """
    times = re.findall(r"elapsed time per iteration \(ms\):\s*([\d.]+)", text)
    steady = _steady([float(one) / MS_PER_S for one in times])
    if not steady:
        raise ReadingError(
            "/log/content", "no 'elapsed time per iteration (ms)'; Megatron-LM logs one each log interval"
        )
    batches = re.findall(r"global batch size:\s*(\d+)", text)
    peaks = [float(one) / MIB_PER_GIB for one in re.findall(r"max reserved:\s*([\d.]+)", text)]
    return LoggedRun(
        step_s=statistics.median(steady),
        peak_memory_gib=max(peaks, default=None),
        steps=len(steady),
        global_batch_sequences=int(batches[-1]) if batches else None,
    )


def read_hf_trainer(text: str) -> LoggedRun:
    """The summary that ``Trainer.train`` prints as a dictionary, or saves as all_results.json or in trainer_state.json.

    >>> read_hf_trainer("{'train_runtime': 60.0, 'train_steps_per_second': 0.5, 'train_loss': 1.1, 'epoch': 1.0}").step_s
    2.0
    """
    summary = _summary(text)
    if summary is None:
        raise ReadingError(
            "/log/content", "no summary with train_runtime; Trainer prints one at the end, and save_metrics writes it"
        )
    tokens, steps = _positive(summary, "train_tokens_per_second"), _positive(summary, "train_steps_per_second")
    if tokens is None and steps is None:
        raise ReadingError("/log/content", "the summary has neither train_tokens_per_second nor train_steps_per_second")
    samples = _positive(summary, "train_samples_per_second")
    batch = None if steps is None or samples is None else round(samples / steps)
    step_s = None if tokens is not None or steps is None else 1.0 / steps
    return LoggedRun(tokens_per_s=tokens, step_s=step_s, global_batch_sequences=batch or None)


READERS: Mapping[str, Callable[[str], LoggedRun]] = {
    "torchtitan": read_torchtitan,
    "megatron": read_megatron,
    "hf_trainer": read_hf_trainer,
}


def _summary(text: str) -> Mapping[str, Any] | None:
    """The last dictionary that has ``train_runtime``: of a whole JSON file, or of a line of output."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        found = [e for e in [whole, *_entries(whole.get("log_history"))] if "train_runtime" in e]
        return found[-1] if found else None
    summaries = []
    for written in re.findall(r"\{[^{}]*'train_runtime'[^{}]*\}", text):
        try:
            value = ast.literal_eval(written)
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, dict):
            summaries.append(value)
    return summaries[-1] if summaries else None


def _entries(history: Any) -> list[dict[str, Any]]:
    return [entry for entry in history if isinstance(entry, dict)] if isinstance(history, list) else []


def _positive(summary: Mapping[str, Any], name: str) -> float | None:
    try:
        value = float(summary.get(name) or 0.0)
    except (TypeError, ValueError):
        return None
    return value if 0.0 < value < 1e12 else None


def _steady(values: list[float]) -> list[float]:
    """Without the first ones, where as many others follow; zero is no measurement."""
    found = [value for value in values if 0.0 < value < 1e12]
    return found[WARM_UP_LINES:] if len(found) >= 2 * WARM_UP_LINES else found
