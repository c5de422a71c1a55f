"""Runs examples/plan-and-cost.ipynb against a service of its own, and writes its outputs and docs/plan-and-cost.md.

    python -m tests.client.notebook

Cells are run as Python runs a module, and what they print is kept; a cell's last expression is shown, as a notebook does.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.migrate import migrate
from service.seeding import seed
from tests.bench.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "plan-and-cost.ipynb"
PAGE = ROOT / "docs" / "plan-and-cost.md"
FIRST_LINE = "<!-- Rendered from examples/plan-and-cost.ipynb by `python -m tests.client.notebook`. -->"
Notebook = dict[str, Any]


def read() -> Notebook:
    notebook: Notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return notebook


def source(cell: Notebook) -> str:
    return "".join(cell["source"])


def lines(text: str) -> list[str]:
    """As the format has text: a list of lines that keep their ends."""
    return text.splitlines(keepends=True)


def run(notebook: Notebook, address: str) -> Notebook:
    """The notebook with the outputs of its cells, run in order in one namespace. Raises what a cell raises."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    done = []
    with importable(NOTEBOOK.parent), setting("CLUSTERWRIGHT_URL", address):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                done.append(cell)
                continue
            count += 1
            done.append(cell | {"execution_count": count, "outputs": outputs(source(cell), namespace, count)})
    return notebook | {"cells": done}


def outputs(code: str, namespace: dict[str, Any], count: int) -> list[Notebook]:
    """What a cell prints, and its last expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace) if last is not None else None
    found: list[Notebook] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        shown = {"text/plain": lines(repr(value))}
        found.append({"data": shown, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return found


def rendered(notebook: Notebook) -> str:
    """The notebook as Markdown: words as they are, code and outputs as blocks."""
    parts = [FIRST_LINE]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(source(cell))
            continue
        parts.append(f"```python\n{source(cell)}\n```")
        for output in cell["outputs"]:
            text = "".join(output.get("text") or output["data"]["text/plain"]).rstrip("\n")
            parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[None]:
    """As in a notebook: files beside it can be imported."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextlib.contextmanager
def setting(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.sqlite"
        database = Database(f"sqlite:///{path}")
        migrate(database)
        with database.writing() as session:
            seed(session, read_catalog(), system_clock)
        database.close()
        server = ServerProcess(f"sqlite:///{path}", path.with_suffix(".log"))
        server.start()
        try:
            notebook = run(read(), server.address)
        finally:
            server.stop()
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(rendered(notebook), encoding="utf-8")


if __name__ == "__main__":
    main()
