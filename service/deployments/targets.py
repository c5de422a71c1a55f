"""The names of what files are written for, light enough for the command line's help."""

DEPLOYMENT_TARGETS = (
    "vllm", "sglang", "trtllm", "llama-cpp", "compose", "kubernetes", "kserve", "dynamo", "skypilot", "dstack",
    "router", "benchmark",
)  # fmt: skip
ENGINE_TARGETS = ("vllm", "sglang", "trtllm", "llama-cpp")
"""Of these, commands of one engine; the others write files for whichever was planned."""
TARGET_OF_ENGINE = {"tensorrt-llm": "trtllm", "llama.cpp": "llama-cpp"}
"""Engines whose target has another name than they."""
