"""How many processes answer, in files: told by every target that starts vLLM, refused by those that cannot tell."""

import re
from typing import Any

import pytest

from service.deployments.generate import TARGETS, generate
from service.deployments.refusals import TargetCannotExpressError
from tests.service.deployments.plans import AWS, line, plan, workload

STARTS_NONE = ("router", "benchmark")
CANNOT_TELL = ("dynamo", "sglang", "trtllm", "llama-cpp")
TOLD = re.compile(r"--api-server-count[^0-9a-z]*([0-9]+)")


def text_of(target: str, api_servers: int, **given: Any) -> str:
    one = line("chat", AWS, engine_settings={"api_servers": api_servers}, **given)
    found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), target, None)
    return "\n".join(file.content for file in found.files)


@pytest.mark.parametrize("target", [one for one in TARGETS if one not in (*CANNOT_TELL, *STARTS_NONE)])
def test_every_target_that_starts_vllm_tells_it(target: str) -> None:
    layout = {"tensor_parallel": 8}
    assert set(TOLD.findall(text_of(target, 4, layout=layout))) == {"4"}
    assert "--api-server-count" not in text_of(target, 1, layout=layout)


def test_it_is_told_of_all_copies_of_attention_together() -> None:
    """Unless told vLLM starts one for each."""
    layout = {"tensor_parallel": 2, "data_parallel": 4}
    assert set(TOLD.findall(text_of("vllm", 4, layout=layout))) == {"16"}
    assert "--api-server-count" not in text_of("vllm", 1, layout=layout)


@pytest.mark.parametrize("target", CANNOT_TELL)
def test_others_refuse_it(target: str) -> None:
    with pytest.raises(TargetCannotExpressError, match="processes that answer"):
        text_of(target, 4, layout={"tensor_parallel": 2})


def test_nodes_that_follow_another_do_not_answer() -> None:
    """vLLM refuses the option beside --headless."""
    layout = {"tensor_parallel": 8, "pipeline_parallel": 2}
    one = line("chat", AWS, engine_settings={"api_servers": 4}, layout=layout, nodes=2, replicas=1)
    found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), "vllm", None)
    commands = [file.content for file in found.files if "vllm serve" in file.content]
    assert {"--headless" in text for text in commands} == {True, False}
    assert all(("--headless" in text) != bool(TOLD.search(text)) for text in commands)
