"""Host memory under the cache of prefixes, as engines are told of it."""

import shlex

import pytest

from service.deployments.generate import generate
from tests.service.deployments.plans import AWS, line, plan, workload


def words_of(engine: str, gib: float) -> list[str]:
    settings = {"name": engine, "host_cache_gib": gib}
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
