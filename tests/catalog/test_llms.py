"""The listed language models: published parameter counts, and rows that equal what the importer computes."""

import json
import tomllib
from pathlib import Path

import pytest

from catalog.huggingface import llm_row_from_config
from catalog.rows import LlmRow
from solver.precision import WEIGHT_FORMATS
from tests.llm_shapes import LLMS, llm_rows, shape_of

CONFIGS = Path(__file__).parent.parent / "fixtures" / "llm-configs"

EXPLAINED = {
    "llama-4-scout": "the model card counts the vision tower and rounds: 109e9 (text tower 107.8e9)",
    "deepseek-v4-pro": "the name rounds to 1.6e12; hyper-connection and exact compressor sizes are not in the config",
    "gemma-4-26b-a4b": "the name rounds 25.2e9 up to 26e9",
}
"""Models whose computed total is more than 1 % off the published one, and why."""

ACTIVE_EXPLAINED = {
    "llama-4-scout": "the card's 17e9 counts the input embedding (1.03e9) and rounds up",
    "llama-4-maverick": "the card's 17e9 counts the input embedding (1.03e9) and rounds up",
    "qwen3-30b-a3b": "the card's 3.3e9 counts the input embedding (0.31e9)",
    "qwen3.5-122b-a10b": "the name rounds up",
    "gemma-4-26b-a4b": "the name rounds up",
    "nemotron-3-nano-30b-a3b": "the card's 3.6e9 counts the input embedding (0.35e9)",
    "glm-4.5-air": "the card rounds 12.8e9 down",
    "minimax-text-01": "the paper leaves lightning attention's gate out",
}
"""Mixtures of experts whose active parameters are more than 5 % off, or rounded away."""


def all_rows() -> list[LlmRow]:
    return list(llm_rows().values())


def of(ids: str) -> LlmRow:
    return llm_rows()[ids]


def from_widths() -> set[str]:
    """Models entered by the widths that papers and benchmarks state: no config.json was read."""
    files = (LLMS / f"{name}.toml" for name in ("mpt", "qwen", "training-runs", "embedding-widths"))
    return {llm["id"] for file in files for llm in tomllib.loads(file.read_text(encoding="utf-8"))["llm"]}


class TestCounts:
    def test_at_least_eighty_models(self) -> None:
        assert len(llm_rows()) >= 80

    @pytest.mark.parametrize("row", [r for r in all_rows() if r.published_total_weights], ids=lambda r: r.id)
    def test_total_agrees_with_the_published_one(self, row: LlmRow) -> None:
        assert row.published_total_weights is not None
        error = shape_of(row).total_weights / row.published_total_weights - 1
        assert (abs(error) <= 0.01) != (row.id in EXPLAINED), f"{row.id}: {100 * error:+.2f} %"
        assert abs(error) <= 0.035

    @pytest.mark.parametrize(
        "row", [r for r in all_rows() if r.published_active_weights and shape_of(r).is_moe], ids=lambda r: r.id
    )
    def test_active_agrees_with_the_published_one(self, row: LlmRow) -> None:
        assert row.published_active_weights is not None
        error = shape_of(row).active_weights / row.published_active_weights - 1
        assert abs(error) <= (0.13 if row.id in ACTIVE_EXPLAINED else 0.05), f"{row.id}: {100 * error:+.2f} %"

    @pytest.mark.parametrize(
        ("llm", "total"),
        [
            ("llama-3.1-8b", 8_030_261_248),  # safetensors header of meta-llama/Llama-3.1-8B
            ("llama-3.1-70b", 70_553_706_496),
            ("qwen3-8b", 8_190_735_360),
            ("qwen3-30b-a3b", 30_532_122_624),
            ("mixtral-8x7b", 46_702_792_704),
            ("deepseek-v3", 671_026_419_200),
            ("gpt-oss-20b", 20_914_757_184),
        ],
    )
    def test_exact_to_the_parameter(self, llm: str, total: int) -> None:
        # DeepSeek's file also counts the router's bias per expert, as do the rows here
        assert shape_of(of(llm)).total_weights == pytest.approx(total, rel=3e-6)


class TestRows:
    @pytest.mark.parametrize("row", all_rows(), ids=lambda r: r.id)
    def test_is_consistent(self, row: LlmRow) -> None:
        found = shape_of(row)
        assert found.layers == max(sum(a.layers for a in found.attention), sum(f.layers for f in found.feed_forward))
        assert 0 < found.active_weights <= found.total_weights
        assert found.unquantised_weights < 0.02 * found.total_weights
        assert row.native_weights in WEIGHT_FORMATS
        assert row.native_beside_experts is None or row.native_beside_experts in WEIGHT_FORMATS
        assert row.provenance.source
        for group in found.attention:
            assert group.kind in ("linear", "none") or group.heads > 0
            assert group.kind not in ("sliding", "chunked") or group.window_tokens > 0
            assert group.kind != "linear" or group.state_values > 0

    @pytest.mark.parametrize("row", [r for r in all_rows() if r.id not in from_widths()], ids=lambda r: r.id)
    def test_equals_the_import_of_its_config(self, row: LlmRow) -> None:
        path = CONFIGS / f"{_config_name(row)}.json"
        config = json.loads(path.read_text())
        imported = llm_row_from_config(row.id, config, provenance=row.provenance)
        leave = {"name", "hugging_face_id", "family", "published_total_weights", "published_active_weights"}
        if row.id in ("deepseek-v3.1", "gemma-4-31b"):  # read from a requantised copy of the model
            leave |= {"native_weights", "native_beside_experts"}
        if row.extended_context_tokens is not None:  # somebody serves it so; the config does not say it
            assert row.extended_context_tokens > row.max_context_tokens
            assert "extended_context_tokens" in row.provenance.exceptions
            leave |= {"extended_context_tokens"}
        padded = {"feed_forward": {"__all__": {"grouped_intermediate"}}}  # of other checkpoints than the config's
        assert imported.model_dump(exclude=dict.fromkeys(leave, True) | padded) == row.model_dump(
            exclude=dict.fromkeys(leave, True) | padded
        )


def _config_name(row: LlmRow) -> str:
    """The config's file: named in the provenance where one was read, else by the model's own id."""
    source = row.provenance.source
    if source.startswith("config.json of "):
        return source.removeprefix("config.json of ").split(",")[0].replace("/", "--")
    return (row.hugging_face_id or row.id).replace("/", "--")
