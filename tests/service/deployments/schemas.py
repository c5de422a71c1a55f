"""The fields of custom resources that files here use, as their makers document them; any other is refused.

LLMInferenceService: github.com/kserve/kserve, pkg/apis/serving/v1alpha2/llm_inference_service_types.go @aaac4e294dae.
DynamoGraphDeployment: github.com/ai-dynamo/dynamo, docs/kubernetes/dgd-reference.mdx @085a77edd06c and dgd-guide.md
@b13586ebd72f. Pods in them are checked against the schemas of Kubernetes.
"""

from typing import Any

import jsonschema
import kubernetes_validate

KUBERNETES = "1.34"
LABEL = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
Schema = dict[str, Any]


def exactly(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object of these fields and no other."""
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip


COUNT: Schema = {"type": "integer", "minimum": 1}
ANY: Schema = {"type": "object"}
EMPTY = exactly()
METADATA = exactly(
    ("name",), name={"type": "string", "pattern": LABEL}, annotations={"additionalProperties": {"type": "string"}}
)
WORKLOAD = {
    "replicas": {"type": "integer", "minimum": 0},
    "scaling": exactly(
        ("maxReplicas",),
        minReplicas=COUNT,
        maxReplicas=COUNT,
        wva=exactly(("hpa",), variantCost={"type": "string", "pattern": r"^\d+(\.\d+)?$"}, hpa=EMPTY),
    ),
    "parallelism": exactly(tensor=COUNT),
    "template": ANY,
}
LLM_INFERENCE_SERVICE = exactly(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "serving.kserve.io/v1alpha2"},
    kind={"const": "LLMInferenceService"},
    metadata=METADATA,
    spec=exactly(
        ("model",),
        model=exactly(("uri",), uri={"type": "string", "pattern": "^hf://"}, name={"type": "string"}),
        router=exactly(route=EMPTY, gateway=EMPTY, scheduler=EMPTY),
        prefill=exactly(**WORKLOAD),
        **WORKLOAD,
    ),
)
COMPONENT = exactly(
    ("name", "type"),
    name={"type": "string", "pattern": LABEL},
    type={"enum": ["frontend", "worker", "prefill", "decode"]},
    replicas=COUNT,
    multinode=exactly(("nodeCount",), nodeCount={"type": "integer", "minimum": 2}),
    sharedMemorySize={"type": "string", "pattern": r"^\d+Gi$"},
    podTemplate=exactly(("spec",), spec=ANY),
)
DYNAMO_GRAPH_DEPLOYMENT = exactly(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "nvidia.com/v1beta1"},
    kind={"const": "DynamoGraphDeployment"},
    metadata=METADATA,
    spec=exactly(
        ("components",),
        backendFramework={"enum": ["sglang", "vllm", "trtllm"]},
        components={"type": "array", "items": COMPONENT, "minItems": 1, "maxItems": 25},
    ),
)


def check_kserve(document: Schema) -> None:
    """The service, and the pods that its configuration is merged with."""
    jsonschema.validate(document, LLM_INFERENCE_SERVICE)
    spec = document["spec"]
    for workload in (spec, spec.get("prefill")):
        if workload is not None:
            assert ("replicas" in workload) != ("scaling" in workload)
            check_pod(workload["template"])


def check_dynamo(document: Schema) -> None:
    """The graph: components of unlike names, whose command is in a container named main."""
    jsonschema.validate(document, DYNAMO_GRAPH_DEPLOYMENT)
    components = document["spec"]["components"]
    assert len({component["name"] for component in components}) == len(components)
    for component in components:
        check_pod(component["podTemplate"]["spec"])
        assert [one["name"] for one in component["podTemplate"]["spec"]["containers"]] == ["main"]


def check_pod(spec: Schema) -> None:
    kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "spec": spec}, KUBERNETES, strict=True)
