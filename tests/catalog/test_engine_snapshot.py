"""What is read of an engine's release: its options, their values, and the engine it carries."""

import zipfile
from pathlib import Path

import pytest

from catalog.engine_options import read_engine_options, read_engine_releases
from catalog.engine_snapshot import snapshot

CPP = """
const std::vector<ggml_type> kv_cache_types = {
    GGML_TYPE_F16,
    GGML_TYPE_Q8_0,
};
add_opt(common_arg({"-sm", "--split-mode"}, "{none,layer}", "how to split"));
add_opt(common_arg({"--pooling"}, "{none,mean}", "which"));
"""
MODES = """
class DisaggregationMode(Enum):
    AGGREGATED = "agg"
    PREFILL = "prefill"
"""


def test_options_and_values_of_sources_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "arg.cpp").write_text(CPP, encoding="utf-8")
    read = snapshot("llama.cpp", "abc", tmp_path, released="2026-10-01")
    assert read["options"] == ["--pooling", "--split-mode", "-sm"]
    assert read["choices"] == {
        "--cache-type-k": ["f16", "q8_0"], "--cache-type-v": ["f16", "q8_0"], "--split-mode": ["none", "layer"],
    }  # fmt: skip
    assert read["released"] == "2026-10-01"


def test_a_wheel_says_which_engine_it_carries(tmp_path: Path) -> None:
    wheel = tmp_path / "ai_dynamo-9.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("dynamo/vllm/backend_args.py", 'add_argument(g, flag_name="--disaggregation-mode")')
        made.writestr("dynamo/common/constants.py", MODES)
        made.writestr("ai_dynamo-9.dist-info/METADATA", "Requires-Dist: vllm[otel]==0.31.0; extra == 'vllm'\n")
    read = snapshot("dynamo", "9", wheel)
    assert read["carries"] == {"vllm": "0.31.0"}
    assert read["options"] == ["--disaggregation-mode"]
    assert read["choices"] == {"--disaggregation-mode": ["agg", "prefill"]}


@pytest.mark.parametrize("engine", sorted(read_engine_options()))
def test_every_engine_has_a_default_that_is_read(engine: str) -> None:
    releases = read_engine_options()[engine]
    assert read_engine_releases()[engine].default in releases
    for release in releases.values():
        for carried, version in release.carries.items():
            assert version in read_engine_options()[carried]
