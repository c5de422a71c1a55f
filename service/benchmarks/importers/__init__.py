"""Readers of benchmark tools' outputs, one small module each.

A module here is an importer when it has ``TOOL`` (its name on the wire), ``recognises(document)`` and
``read(document)``. Adding one is adding a file: nothing else names it. ``recognises`` looks at content only and must
be false for every other tool's output; a test holds all fixtures against all importers.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Protocol, cast

from service.benchmarks.document import Document, ReadingError
from service.benchmarks.reading import Reading


class Importer(Protocol):
    """What a module in this package offers."""

    TOOL: str

    def recognises(self, document: Document) -> bool: ...

    def read(self, document: Document) -> list[Reading]: ...


@cache
def importers() -> Mapping[str, Importer]:
    """Every importer by the name of its tool."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        importer = cast(Importer, importlib.import_module(f"{__name__}.{module.name}"))
        if importer.TOOL in found:
            raise RuntimeError(f"two importers are called {importer.TOOL}")
        found[importer.TOOL] = importer
    return found


def read_payload(payload: object, tool: str = "auto") -> list[Reading]:
    """The runs in ``payload``. Raises ReadingError when no importer recognises it, or when its content is wrong."""
    if payload is None or payload == "":
        raise ReadingError("/payload", "is empty")
    known = importers()
    document = Document(payload)
    if tool != "auto":
        if tool not in known:
            raise ReadingError("/tool", f"{tool!r} is not a known tool; known are auto, {', '.join(sorted(known))}")
        if not known[tool].recognises(document):
            raise ReadingError("/payload", f"does not look like the output of {tool}")
        chosen = known[tool]
    else:
        matching = [importer for importer in known.values() if importer.recognises(document)]
        if not matching:
            raise ReadingError("/payload", _why_unrecognised(document, sorted(known)))
        if len(matching) > 1:
            names = ", ".join(sorted(importer.TOOL for importer in matching))
            raise ReadingError("/payload", f"could be the output of {names}: state the tool")
        chosen = matching[0]
    readings = chosen.read(document)
    if not readings:
        raise ReadingError("/payload", f"is a {chosen.TOOL} file without a single result")
    return readings


def _why_unrecognised(document: Document, known: list[str]) -> str:
    text = (document.text or "").lstrip()
    if text[:1] in ("{", "[") and document.value is None and not document.objects:
        return "starts like JSON but is not valid JSON: the file may be truncated"
    return f"is not the output of any known tool; known are {', '.join(known)}"
