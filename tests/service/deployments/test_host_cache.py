"""Host memory under the cache of prefixes, as engines are told of it."""

import json
import shlex

import pytest
import yaml

from service.deployments.generate import generate
from service.deployments.refusals import TargetCannotExpressError
from tests.service.deployments.plans import AWS, line, plan, workload


def words_of(engine: str, gib: float, disk_gib: float = 0.0) -> list[str]:
    settings = {"name": engine, "host_cache_gib": gib, "disk_cache_gib": disk_gib}
    one = line("chat", AWS, engine=engine, engine_settings=settings, layout={"tensor_parallel": 2})
    found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), engine, None)
    scripts = [file.content for file in found.files if "\nexec " in file.content]
    return shlex.split(scripts[0].split("\nexec ")[1])


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", ["--kv-offloading-backend", "native", "--kv-offloading-size", "128"]),
        ("sglang", ["--enable-hierarchical-cache", "--hicache-size", "68"]),
    ],
)
def test_engines_are_told(engine: str, expected: list[str]) -> None:
    """vLLM of all ranks together in GiB, SGLang of each in GB."""
    words = words_of(engine, 64)
    start = words.index(expected[0])
    assert words[start : start + len(expected)] == expected
    assert expected[0] not in words_of(engine, 0)


def test_vllm_is_told_of_a_disk_under_it() -> None:
    """Host memory of both ranks in bytes, replies kept too, blocks in files of a folder; without a bound of its own."""
    words = words_of("vllm", 64, 500)
    told = json.loads(words[words.index("--kv-transfer-config") + 1])
    assert told["kv_connector"] == "OffloadingConnector"
    extra = told["kv_connector_extra_config"]
    assert extra["cpu_bytes_to_use"] == 2 * 64 * 2**30
    assert extra["offload_prompt_only"] is False
    assert [tier["type"] for tier in extra["secondary_tiers"]] == ["fs"]
    assert "--kv-offloading-backend" not in words


def test_sglang_is_told_of_a_disk_under_it() -> None:
    words = words_of("sglang", 64, 500)
    start = words.index("--hicache-storage-backend")
    assert words[start + 1] == "file"
    assert json.loads(words[start + 3]) == {"max_size": 500 * 2**30}


@pytest.mark.parametrize("target", ["compose", "kubernetes"])
def test_containers_reach_the_local_disks(target: str) -> None:
    settings = {"name": "vllm", "host_cache_gib": 64, "disk_cache_gib": 500}
    one = line("chat", AWS, engine="vllm", engine_settings=settings, layout={"tensor_parallel": 2})
    found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), target, None)
    written = "\n".join(file.content for file in found.files)
    assert "/mnt/kv-cache" in written
    assert all(list(yaml.safe_load_all(file.content)) for file in found.files if file.path.endswith(".yaml"))


@pytest.mark.parametrize("target", ["dynamo", "kserve"])
def test_others_are_refused(target: str) -> None:
    settings = {"name": "vllm", "host_cache_gib": 64, "disk_cache_gib": 500}
    one = line("chat", AWS, engine="vllm", engine_settings=settings, layout={"tensor_parallel": 2})
    with pytest.raises(TargetCannotExpressError, match="local disks"):
        generate(plan([workload("chat", "llama-3.1-70b")], [one]), target, None)
