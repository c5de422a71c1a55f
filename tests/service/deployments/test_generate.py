"""Every target for every shape of plan: files that their readers take, or reasons; never others than meant."""

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.engine_options import read_engine_options
from service.agent.cli import build_parser
from service.benchmarks.engine_arguments import engine_settings, read_arguments
from service.deployments.generate import TARGETS, generate
from service.deployments.plan import DeploymentPlan
from service.deployments.refusals import TargetCannotExpressError
from service.wire.deployments import DeploymentOut
from tests.seeds import cases
from tests.service.deployments.golden import GOLDEN, answers
from tests.service.deployments.plans import (
    AMD,
    AWS,
    MACHINES,
    MODELS,
    OWN,
    PARTITION,
    SPOT,
    line,
    plan,
    shapes,
    workload,
)
from tests.service.deployments.schemas import KUBERNETES, check_dynamo, check_kserve

VERSIONS = tuple(version for versions in read_engine_options().values() for version in versions)
ENGINES = {"vllm": "vllm", "trtllm": "tensorrt-llm", "llama-cpp": "llama.cpp"}
"""Targets that are an engine whose command line the intake reads back, and the engine."""
RESOURCES = {"kserve": check_kserve, "dynamo": check_dynamo}
CONTEXTS = (2048, 8192, 131_072)


def made(deployed: DeploymentPlan, target: str, version: str | None = None) -> DeploymentOut | None:
    """None where the target cannot express the plan, with a reason for each part."""
    try:
        return generate(deployed, target, version)
    except TargetCannotExpressError:
        return None


def command_of(script: str) -> list[str]:
    """The words of the command that a script ends with, as a shell reads them."""
    (_, last) = script.split("\nexec ")
    return shlex.split(last)


def test_files_are_those_that_are_meant() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert answers() == golden, "intended? python -m tests.service.deployments.golden"


@st.composite
def plans(draw: st.DrawFn) -> DeploymentPlan:
    """One to three workloads of any names, one to four lines of any shape."""
    names = draw(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    workloads = [workload(name, draw(st.sampled_from(sorted(MODELS)))) for name in names]
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        offer = draw(st.sampled_from(sorted(MACHINES)))
        layout = {
            "tensor_parallel": draw(st.sampled_from([1, 2, 4, 8])),
            "pipeline_parallel": draw(st.sampled_from([1, 1, 2])),
        }
        split = draw(st.booleans()) and offer in (AWS, SPOT)
        if split:
            layout = {}
        elif draw(st.booleans()):
            layout["expert_parallel"] = layout["tensor_parallel"]
        lines.append(
            line(
                draw(st.sampled_from(names)),
                offer,
                layout=layout,
                replicas=draw(st.integers(1, 9)),
                role=draw(st.sampled_from(["aggregated"] * 5 + ["prefill", "decode"])),
                precision={
                    "weights": draw(st.sampled_from(["bf16", "fp16", "fp8", "nf4", "nvfp4"])),
                    "kv_cache": draw(st.sampled_from(["bf16", "fp16", "fp8", "int8"])),
                },
                engine_settings={
                    "max_sequences": draw(st.integers(1, 1024)),
                    "max_batched_tokens": draw(st.sampled_from([2048, 8192, 16384])),
                    "max_context_tokens": draw(st.sampled_from(CONTEXTS)),
                    "memory_fraction": draw(st.sampled_from([0.5, 0.85, 0.92])),
                },
                partition=PARTITION if split else None,
                serves_requests_per_s=draw(st.sampled_from([0.0, 0.25, 12.5])),
            )
        )
    return plan(workloads, lines, spare_nodes=draw(st.integers(0, 2)))


class TestAnyPlan:
    @settings(max_examples=cases(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(plans(), st.sampled_from([None, *VERSIONS]))
    def test_every_target_writes_what_its_reader_takes_or_says_why_not(
        self, deployed: DeploymentPlan, version: str | None
    ) -> None:
        for target in TARGETS:
            answer = made(deployed, target, version)
            if answer is None:
                continue
            assert answer == generate(deployed, target, version)
            for file in answer.files:
                check_file(target, file.path, file.content)
            if target in ENGINES:
                check_round_trip(deployed, target, answer)


def check_file(target: str, path: str, content: str) -> None:
    if path.endswith(".sh"):
        assert content.startswith("#!/bin/sh\n# ")
        assert command_of(content)
    elif path.endswith(".json"):
        json.loads(content)
    elif target in RESOURCES:
        for document in yaml.safe_load_all(content):
            RESOURCES[target](document)
    elif target == "kubernetes" and path != "adapter-rule.yaml":
        for document in yaml.safe_load_all(content):
            check_manifest(document)
    else:
        assert list(yaml.safe_load_all(content))


def check_manifest(document: dict[str, Any]) -> None:
    """Against the schemas of Kubernetes, which refuse unknown fields; a LeaderWorkerSet by the pods in it."""
    if document["kind"] != "LeaderWorkerSet":
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
        return
    template = document["spec"]["leaderWorkerTemplate"]
    assert set(document["spec"]) == {"replicas", "leaderWorkerTemplate"}
    assert set(template) == {"size", "restartPolicy", "leaderTemplate", "workerTemplate"}
    for role in ("leaderTemplate", "workerTemplate"):
        pod = {"apiVersion": "v1", "kind": "Pod", **template[role]}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def check_round_trip(deployed: DeploymentPlan, target: str, answer: DeploymentOut) -> None:
    """plan → command → what the intake of measured runs reads of that command → the plan's configuration."""
    if target != "vllm":
        check_budgets(deployed, target, answer)
        return
    scripts = {file.path.split(".")[0]: file.content for file in answer.files}
    for kind in deployed.kinds:
        words = command_of(scripts[kind.name])
        stated, layout, precision = read_arguments(words), kind.line.layout, kind.line.precision
        assert (stated.tensor_parallel or 1) == layout.tensor_parallel
        assert (stated.pipeline_parallel or 1) == layout.pipeline_parallel
        assert (stated.data_parallel or 1) == layout.data_parallel
        assert ("--enable-expert-parallel" in words) == (layout.expert_parallel > 1)
        assert stated.weights == (
            None if kind.model.native_weights == precision.weights != "bf16" else precision.weights
        )
        assert stated.kv_cache == precision.kv_cache
        read = engine_settings("vllm", None, words)
        assert kind.settings.max_sequences == read.max_sequences
        assert kind.settings.max_batched_tokens == read.max_batched_tokens
        assert kind.settings.max_context_tokens == read.max_context_tokens
        assert kind.settings.memory_fraction == read.memory_fraction


def check_budgets(deployed: DeploymentPlan, target: str, answer: DeploymentOut) -> None:
    """The same for engines whose formats are those of the file, and whose memory is stated otherwise."""
    files = {file.path: file.content for file in answer.files}
    for kind in deployed.kinds:
        words = command_of(files[f"{kind.name}.sh"])
        stated, layout = read_arguments(words), kind.line.layout
        if target == "trtllm":
            assert (stated.tensor_parallel or 1) == layout.tensor_parallel
            assert (stated.pipeline_parallel or 1) == layout.pipeline_parallel
            assert ("--ep_size" in words) == (layout.expert_parallel > 1)
            assert (kind.line.precision.kv_cache == "fp8") == (f"{kind.name}.yaml" in files)
        else:
            assert stated.kv_cache == kind.line.precision.kv_cache
            assert words[words.index("--split-mode") + 1] == (
                "tensor" if layout.tensor_parallel > 1 else "layer" if layout.pipeline_parallel > 1 else "none"
            )
        read = engine_settings(ENGINES[target], None, words)
        assert read.max_sequences == kind.settings.max_sequences
        assert read.max_batched_tokens == kind.settings.max_batched_tokens
        assert target == "llama-cpp" or read.max_context_tokens == kind.settings.max_context_tokens


class TestResources:
    @pytest.mark.parametrize(
        ("check", "target"), [(check_kserve, "kserve"), (check_dynamo, "dynamo")], ids=["kserve", "dynamo"]
    )
    def test_their_schemas_refuse_what_they_do_not_know(self, check: Callable[..., None], target: str) -> None:
        (file,) = generate(shapes()["one device"], target, None).files
        document = yaml.safe_load(file.content)
        check(document)
        document["spec"]["replicaz"] = 3
        with pytest.raises(jsonschema.ValidationError, match="replicaz"):
            check(document)

    @pytest.mark.parametrize("target", ["kserve", "dynamo"])
    def test_options_are_those_of_the_script(self, target: str) -> None:
        """plan → resource → what the intake reads of its command, and of the script's, is one configuration."""
        deployed = plan([workload("chat")], [line("chat", AWS, layout={"tensor_parallel": 4})])
        (file,) = generate(deployed, target, "0.31.0").files
        spec = yaml.safe_load(file.content)["spec"]
        if target == "kserve":
            words = ["--tensor-parallel-size", str(spec["parallelism"]["tensor"])]
            words += spec["template"]["containers"][0]["args"]
        else:
            words = spec["components"][1]["podTemplate"]["spec"]["containers"][0]["command"]
        script = command_of(generate(deployed, "vllm", "0.30.0").files[0].content)
        assert read_arguments(words) == read_arguments(script)
        assert engine_settings("vllm", None, words) == engine_settings("vllm", None, script)

    def test_pools_are_workers_that_hand_caches_over(self) -> None:
        deployed = shapes()["two pools"]
        (file,) = generate(deployed, "dynamo", None).files
        _, prefill, decode = yaml.safe_load(file.content)["spec"]["components"]
        for component, role, replicas in ((prefill, "prefill", 2), (decode, "decode", 1)):
            assert (component["type"], component["replicas"]) == (role, replicas)
            words = component["podTemplate"]["spec"]["containers"][0]["command"]
            assert words[words.index("--disaggregation-mode") + 1] == role
            assert json.loads(words[words.index("--kv-transfer-config") + 1])["kv_connector"] == "NixlConnector"
        (file,) = generate(deployed, "kserve", None).files
        spec = yaml.safe_load(file.content)["spec"]
        assert (spec["replicas"], spec["prefill"]["replicas"]) == (1, 2)
        roles = {
            name: next(
                e["value"] for e in part["template"]["containers"][0]["env"] if e["name"] == "VLLM_ADDITIONAL_ARGS"
            )
            for name, part in (("decode", spec), ("prefill", spec["prefill"]))
        }
        assert "kv_consumer" in roles["decode"]
        assert "kv_producer" in roles["prefill"]
        (_, transfer) = shlex.split(roles["prefill"])
        assert json.loads(transfer)["kv_connector"] == "NixlConnector"

    def test_a_release_of_dynamo_is_that_which_carries_the_engine(self) -> None:
        deployed = plan([workload("chat")], [line("chat", AWS)])
        assert generate(deployed, "dynamo", "0.23.0").engine_versions == {"vllm": "0.23.0", "dynamo": "1.3.1"}
        assert generate(deployed, "dynamo", None).engine_versions == {"vllm": "0.31.0", "dynamo": "1.6.1"}
        with pytest.raises(TargetCannotExpressError, match=r"carries vllm 0\.24\.0; known are 0\.23\.0"):
            generate(deployed, "dynamo", "0.24.0")

    def test_replicas_scale_to_the_plans_number_at_the_plans_price(self) -> None:
        deployed = plan([workload("chat", min_replicas=1)], [line("chat", AWS, replicas=4)])
        (file,) = generate(deployed, "kserve", None).files
        scaling = yaml.safe_load(file.content)["spec"]["scaling"]
        assert scaling == {"minReplicas": 1, "maxReplicas": 4, "wva": {"variantCost": "2.500000", "hpa": {}}}

    def test_what_a_shell_would_read_is_not_handed_to_one(self) -> None:
        """KServe's own command is a shell's: a name that is more than a word there has no place in it."""
        deployed = plan([workload("chat")], [line("chat", AWS)])
        (kind,) = deployed.kinds
        for name in ("a b", "$(reboot)", "x;reboot", "`id`", "'"):
            named = replace(deployed, kinds=(replace(kind, model=replace(kind.model, llm=name)),))
            with pytest.raises(TargetCannotExpressError, match="to a shell"):
                generate(named, "kserve", None)


PLACE = (
    "set -eu", ': "${PORT:=8000}"', ': "${REPLICA:=0}"', "PORT=$((PORT + REPLICA))",
    "export CUDA_VISIBLE_DEVICES=$(seq -s, $((REPLICA * 1)) $((REPLICA * 1 + 0)))",
)  # fmt: skip


@pytest.mark.parametrize(("tensor_parallel", "replicas"), [(1, 8), (2, 4), (4, 2)])
def test_replicas_on_one_machine_have_ports_and_devices_of_their_own(tensor_parallel: int, replicas: int) -> None:
    """The script as a shell runs it: no device and no port twice, and every device once."""
    layout = {"tensor_parallel": tensor_parallel}
    deployed = plan([workload("chat")], [line("chat", AWS, replicas=replicas, layout=layout)])
    head, _ = generate(deployed, "vllm", None).files[0].content.split("\nexec ")
    ports, devices = [], []
    for replica in range(replicas):
        done = subprocess.run(
            ["sh", "-c", f'{head}\necho "$PORT $CUDA_VISIBLE_DEVICES"'],
            env={"PATH": "/usr/bin:/bin", "PORT": "9000", "REPLICA": str(replica)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        port, visible = done.stdout.split()
        ports.append(port)
        devices += visible.split(",")
    assert len(set(ports)) == replicas
    assert devices == [str(number) for number in range(8)]


class TestNames:
    @settings(max_examples=cases(100), deadline=None)
    @given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=120))
    def test_no_name_becomes_a_command(self, name: str) -> None:
        deployed = plan([workload(name)], [line(name, AWS)])
        answer = generate(deployed, "vllm", None)
        (head, command) = answer.files[0].content.split("\nexec ")
        assert command.startswith("vllm serve meta-llama/Llama-3.1-70B --host")
        for text in head.split("\n"):
            assert text.startswith("#") or text in PLACE
        bench = generate(deployed, "benchmark", None).files[0].content
        words = command_of(bench)
        assert words[words.index("--workload") + 1] == name
        (manifest, *_) = yaml.safe_load_all(generate(deployed, "kubernetes", None).files[0].content)
        assert manifest["metadata"]["annotations"]["clusterwright/workload"] == name
        for target in RESOURCES:
            (resource,) = yaml.safe_load_all(generate(deployed, target, None).files[0].content)
            assert resource["metadata"]["annotations"]["clusterwright/workload"] == name
            assert resource["metadata"]["name"].endswith("-1")

    def test_dollar_signs_are_not_variables(self) -> None:
        deployed = plan([workload("$(HOSTNAME) ${HOME}")], [line("$(HOSTNAME) ${HOME}", AWS)])
        (file,) = generate(deployed, "compose", None).files
        (labels,) = {json.dumps(s["labels"]) for s in yaml.safe_load(file.content)["services"].values()}
        assert json.loads(labels)["clusterwright.workload"] == "$$(HOSTNAME) $${HOME}"


class TestWhatFilesSay:
    def test_every_replica_has_devices_of_its_own(self) -> None:
        for name, deployed in shapes().items():
            answer = made(deployed, "compose")
            if answer is None or name == "split devices":
                continue
            for file in answer.files:
                taken = [
                    number
                    for service in yaml.safe_load(file.content)["services"].values()
                    for device in service["deploy"]["resources"]["reservations"]["devices"]
                    for number in device["device_ids"]
                ]
                assert len(taken) == len(set(taken)), name

    def test_split_devices_ask_for_instances(self) -> None:
        deployed = shapes()["split devices"]
        manifest = next(yaml.safe_load_all(generate(deployed, "kubernetes", None).files[0].content))
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": "1"}
        (file,) = generate(deployed, "compose", None).files
        services = yaml.safe_load(file.content)["services"]
        asked = {s["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"][0] for s in services.values()}
        assert len(asked) == 9

    def test_routers_keep_to_the_plans_shares(self) -> None:
        deployed = plan(
            [workload("chat")],
            [line("chat", AWS, serves_requests_per_s=30.0), line("chat", OWN, serves_requests_per_s=10.0)],
        )
        files = {file.path: file.content for file in generate(deployed, "router", None).files}
        (workloads,) = json.loads(files["weights.json"])["workloads"]
        assert workloads["weights"] == {"chat-1": 30.0, "chat-2": 10.0}
        (listener,) = yaml.safe_load(files["envoy.yaml"])["static_resources"]["listeners"]
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        (route,) = manager["route_config"]["virtual_hosts"][0]["routes"]
        assert route["route"]["weighted_clusters"]["clusters"] == [
            {"name": "chat-1", "weight": 30_000},
            {"name": "chat-2", "weight": 10_000},
        ]

    def test_routers_refuse_nothing_themselves(self) -> None:
        """Envoy's own limit is 1,024 requests with a kind of replica at a time, of which two replicas here seat as many."""
        kinds = [line("chat", AWS, serves_requests_per_s=9e6), line("chat", OWN, serves_requests_per_s=3e6)]
        files = {one.path: one.content for one in generate(plan([workload("chat")], kinds), "router", None).files}
        resources = yaml.safe_load(files["envoy.yaml"])["static_resources"]
        for cluster in resources["clusters"]:
            (threshold,) = cluster["circuit_breakers"]["thresholds"]
            assert set(threshold) == {"max_connections", "max_pending_requests", "max_requests"}
            assert min(threshold.values()) == 2**32 - 1
        manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        (route,) = manager["route_config"]["virtual_hosts"][0]["routes"]
        weights = [one["weight"] for one in route["route"]["weighted_clusters"]["clusters"]]
        assert sum(weights) < 2**32
        assert weights[0] / weights[1] == pytest.approx(3.0, rel=1e-6)

    def test_the_driver_takes_its_own_command(self) -> None:
        (file,) = generate(shapes()["one device"], "benchmark", None).files
        *words, others = command_of(file.content)
        assert others == "$@"
        options = build_parser().parse_args([*words[2:], "--requests", "1000", "--records", "run.jsonl.gz"])
        assert (options.recommendation, options.requests) == ("rec_01", 1000)
        assert options.rate == pytest.approx([12.5 / 3], rel=1e-5)

    def test_no_secret_is_written(self) -> None:
        for deployed in shapes().values():
            for target in TARGETS:
                answer = made(deployed, target)
                for file in [] if answer is None else answer.files:
                    assert "hf_" not in file.content.replace("hf_token", "")

    @pytest.mark.parametrize(
        ("shape", "target", "says"),
        [
            ("several nodes", "compose", "spans 2 nodes"),
            ("two pools", "kubernetes", "target dynamo does"),
            ("no checkpoint", "vllm", "no checkpoint of own-model"),
            ("format nobody published", "vllm", "nvfp4"),
            ("other vendor", "kubernetes", "AMD"),
            ("mixed fleet", "skypilot", "share one"),
            ("mixed fleet", "dynamo", "shares of their own"),
            ("several nodes", "kserve", "spans 2"),
            ("other vendor", "dynamo", "no image of vllm for devices of AMD"),
            ("several nodes", "trtllm", "TensorRT-LLM spans nodes under MPI"),
            ("one device", "trtllm", "fp8"),
            ("one device", "llama-cpp", "no files with weights in fp8"),
            ("split devices", "llama-cpp", "not known to run"),
            ("other vendor", "trtllm", "not known to run on mi300x"),
            ("drafts", "sglang", "how sglang is told to is not written here"),
            ("drafts with heads", "vllm", "names no checkpoint of theirs"),
        ],
    )
    def test_refusals_say_which_part_and_why(self, shape: str, target: str, says: str) -> None:
        with pytest.raises(TargetCannotExpressError) as refused:
            generate(shapes()[shape], target, None)
        assert says in str(refused.value.extra["cannot_express"])

    def test_budgets_that_the_engine_refuses_are_refused_here(self) -> None:
        small = line("chat", AWS, engine_settings={"max_sequences": 512, "max_batched_tokens": 256})
        with pytest.raises(TargetCannotExpressError, match="token budget"):
            generate(plan([workload("chat")], [small]), "vllm", None)

    def test_fractions_are_of_what_each_engine_means(self) -> None:
        """80 GB of which 92 % is used, 25 GB of it for the cache."""
        deployed = plan([workload("chat")], [line("chat", AWS, engine_settings={"memory_fraction": 0.92})])
        commands = {
            target: command_of(generate(deployed, target, None).files[0].content) for target in ("vllm", "trtllm")
        }
        assert "--gpu-memory-utilization 0.92" in " ".join(commands["vllm"])
        assert "--kv_cache_free_gpu_memory_fraction 0.796" in " ".join(commands["trtllm"])

    def test_the_cache_of_llama_cpp_is_shared_by_its_slots(self) -> None:
        deployed = plan([workload("chat")], [line("chat", AWS, layout={"tensor_parallel": 2})])
        (file,) = generate(deployed, "llama-cpp", None).files
        assert "--ctx-size 100000 --kv-unified --parallel 512" in file.content
        assert '"${MODEL:?path of the GGUF file of the model in BF16}"' in file.content
        with pytest.raises(TargetCannotExpressError, match="takes no --split-mode tensor"):
            generate(deployed, "llama-cpp", "f49e91787")

    def test_a_cache_of_eight_bits_is_stated_in_a_file_beside_the_script(self) -> None:
        deployed = plan([workload("chat")], [line("chat", AWS, precision={"weights": "bf16", "kv_cache": "fp8"})])
        script, config = generate(deployed, "trtllm", None).files
        assert yaml.safe_load(config.content) == {"kv_cache_config": {"dtype": "fp8"}}
        assert f': "${{CONFIG:=$(dirname "$0")/{config.path}}}"' in script.content
        assert '--extra_llm_api_options "${CONFIG}"' in script.content

    def test_options_that_a_release_lacks_are_refused(self) -> None:
        with pytest.raises(TargetCannotExpressError, match="options of sglang"):
            generate(shapes()["one device"], "sglang", "0.33.0")

    def test_vendors_without_an_image_still_get_commands(self) -> None:
        assert made(plan([workload("chat")], [line("chat", AMD)]), "vllm") is not None
