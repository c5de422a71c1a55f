"""What files of a deployment say beside the files: drafting, autoscaling, the context that commands take."""

import json
import shlex

from service.benchmarks.engine_arguments import drafts
from service.deployments.generate import generate
from tests.service.deployments.plans import AWS, line, plan, shapes, workload


def command_words(script: str) -> list[str]:
    return shlex.split(script.split("\nexec ")[1])


class TestDrafting:
    def test_look_up_is_in_the_command(self) -> None:
        words = command_words(generate(shapes()["drafts"], "vllm", None).files[0].content)
        config = json.loads(words[words.index("--speculative-config") + 1])
        assert config == {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}
        assert drafts(words)
        assert not drafts(command_words(generate(shapes()["one device"], "vllm", None).files[0].content))


class TestNotes:
    def test_an_autoscaler_that_may_go_below_the_plan_says_so(self) -> None:
        deployed = plan([workload("chat")], [line("chat", AWS)])
        most = deployed.kinds[0].line.replicas
        assert most > 1
        (said,) = [n.text for n in generate(deployed, "kubernetes", None).notes if n.about.startswith("minReplicas of")]
        assert said.startswith("1, the workload's min_replicas, to ")
        assert f" to {most}, " in said

    def test_the_context_that_a_command_limits_is_explained(self) -> None:
        answer = generate(plan([workload("chat")], [line("chat", AWS)]), "vllm", None)
        (said,) = [note.text for note in answer.notes if note.about.startswith("context of")]
        words = command_words(answer.files[0].content)
        assert said.startswith(f"{words[words.index('--max-model-len') + 1]} tokens")
