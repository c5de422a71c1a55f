"""Write down which options an engine's command line has, from the engine's own release.

    pip download --no-deps vllm==0.24.0
    python -m catalog.engine_snapshot vllm 0.24.0 vllm-0.24.0-*.whl

Nothing of the release is run or installed: its sources are parsed. A folder that holds the sources (a checkout, an unpacked
source distribution) does as well as a wheel. The result is ``catalog/engines/ENGINE-VERSION.json``. Versions that are commits are
told apart by age with ``--released``.
"""

import argparse
import ast
import fnmatch
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("engines")
SOURCES = {
    "vllm": ("vllm/engine/arg_utils.py", "vllm/entrypoints/*cli_args.py", "vllm/config/cache.py",
             "vllm/model_executor/layers/quantization/__init__.py"),
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/*.py", "sglang/srt/arg_groups/choices.py"),
    "tensorrt-llm": ("tensorrt_llm/commands/serve.py",),
    "llama.cpp": ("common/arg.cpp",),
    "dynamo": ("dynamo/vllm/args.py", "dynamo/vllm/backend_args.py", "dynamo/common/configuration/groups/runtime_args.py",
               "dynamo/common/constants.py", "dynamo/vllm/constants.py"),
}  # fmt: skip
OPTION = re.compile(r"--?[a-zA-Z][a-zA-Z0-9_-]*")
CHOICES = {"CacheDType": "--kv-cache-dtype", "QuantizationMethods": "--quantization",
           "QUANTIZATION_CHOICES": "--quantization", "DisaggregationMode": "--disaggregation-mode"}  # fmt: skip
CARRIED = re.compile(r"^Requires-Dist: (vllm)(?:\[[^\]]*\])?==([0-9][^\s;]*)", re.MULTILINE)
"""The engine that a release is built around, where its metadata pin one."""
CACHE_TYPES = re.compile(r"kv_cache_types\s*=\s*\{([^}]*)\}")
SPLIT_MODES = re.compile(r'"--split-mode"\},\s*"\{([a-z,]+)\}"')
"""Names of the literal types and lists whose members an option takes."""


def read_sources(engine: str, release: Path) -> dict[str, str]:
    """The files of a release that declare options, by path. Raises ValueError when there are none."""
    patterns = SOURCES[engine]
    found: dict[str, str] = {}
    if release.is_dir():
        for path in sorted(p for p in release.rglob("*") if p.suffix in {".py", ".cpp"}):
            name = path.relative_to(release).as_posix()
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                found[name] = path.read_text(encoding="utf-8")
    else:
        with zipfile.ZipFile(release) as wheel:
            for name in sorted(wheel.namelist()):
                if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                    found[name] = wheel.read(name).decode("utf-8")
    if not found:
        raise ValueError(f"{release} has none of {', '.join(patterns)}")
    return found


def options_of(sources: dict[str, str]) -> tuple[list[str], dict[str, list[str]]]:
    """Options, and the values of those whose values are written out beside them."""
    options: set[str] = set()
    choices: dict[str, list[str]] = {}
    for name, text in sources.items():
        if name.endswith(".cpp"):
            options.update(_cpp_options(text))
            choices |= _cpp_choices(text)
            continue
        tree = ast.parse(text)
        options.update(_declared(tree))
        options.update(_fields(tree))
        choices |= _choices(tree)
    return sorted(options), choices


def _cpp_options(text: str) -> Iterator[str]:
    """``{"-a", "--b"}`` at the start of an ``add_opt(common_arg(…))``."""
    for group in re.findall(r"common_arg\(\s*\{([^}]*)\}", text):
        yield from (word for word in re.findall(r'"([^"]+)"', group) if OPTION.fullmatch(word))


def _cpp_choices(text: str) -> dict[str, list[str]]:
    """Types of the key-value cache, and ways to split a model."""
    found: dict[str, list[str]] = {}
    if types := CACHE_TYPES.search(text):
        names = [name.lower() for name in re.findall(r"GGML_TYPE_(\w+)", types[1])]
        found |= {"--cache-type-k": names, "--cache-type-v": names}
    if modes := SPLIT_MODES.search(text):
        found["--split-mode"] = modes[1].split(",")
    return found


def _declared(tree: ast.AST) -> Iterator[str]:
    """Literals handed to ``add_argument`` (argparse) and ``option`` (click), and to ``aliases=``, ``cli_name=`` and
    ``flag_name=``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"add_argument", "option"}:
                yield from _strings(node.args)
        if isinstance(node, ast.keyword) and node.arg in {"aliases", "cli_name", "flag_name"}:
            yield from _strings([node.value])


def _strings(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        for leaf in ast.walk(node):
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                yield from (leaf.value.split("/") if OPTION.fullmatch(leaf.value.split("/")[0]) else ())


def _fields(tree: ast.AST) -> Iterator[str]:
    """Fields annotated ``A[type, help]``, and those of a class ``…FrontendArgs``: each is an option of its name."""
    for part in ast.walk(tree):
        if isinstance(part, ast.ClassDef) and part.name.endswith("FrontendArgs"):
            names = [n.target.id for n in part.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
            yield from ("--" + name.replace("_", "-") for name in names)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        annotation = node.annotation
        if isinstance(annotation, ast.Subscript) and getattr(annotation.value, "id", "") == "A":
            words = ast.unparse(annotation)
            if "no_cli=True" not in words and "Derived(" not in words:
                yield "--" + node.target.id.replace("_", "-")


def _choices(tree: ast.AST) -> dict[str, list[str]]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in CHOICES:  # an enumeration of them
            values = [part.value for part in node.body if isinstance(part, ast.Assign)]
            found[CHOICES[node.name]] = [
                v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)
            ]
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            option = CHOICES.get(node.targets[0].id)
            if option is not None:
                words = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
                found[option] = [word for word in words if isinstance(word, str)]
    return found


def carried(release: Path) -> dict[str, str]:
    """Engines that the wheel's metadata pin, by name."""
    if release.is_dir():
        return {}
    with zipfile.ZipFile(release) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return dict(CARRIED.findall(wheel.read(metadata).decode("utf-8")))


def snapshot(
    engine: str, version: str, release: Path, source: str | None = None, released: str | None = None
) -> dict[str, Any]:
    """What is written down of a release."""
    sources = read_sources(engine, release)
    options, choices = options_of(sources)
    carries = carried(release) if engine == "dynamo" else {}
    return {
        "engine": engine,
        "version": version,
        "source": source or release.name,
        **({"released": released} if released else {}),
        **({"carries": carries} if carries else {}),
        "files": list(sources),
        "options": options,
        "choices": choices,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=sorted(SOURCES))
    parser.add_argument("version")
    parser.add_argument("release", type=Path, help="a wheel, or a folder of sources")
    parser.add_argument("--source", help="what to name as the source; the wheel's file name when left out")
    parser.add_argument("--released", metavar="DATE", help="when, where the version does not say which is the newer")
    given = parser.parse_args(arguments)
    found = snapshot(given.engine, given.version, given.release, given.source, given.released)
    path = FOLDER / f"{given.engine}-{given.version}.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}: {len(found['options'])} options\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
