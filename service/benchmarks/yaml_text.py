"""YAML as untrusted text: composed here from the parser's events, without recursion and within bounds.

PyYAML composes nested nodes recursively, with libyaml on the C stack: forty thousand brackets end the process. Events
come one by one, so that depth and number are known before anything is built. Aliases are refused (a few hundred bytes
of them can expand to gigabytes), and so are tags; numbers are those of JSON (what else YAML 1.1 takes for a number,
such as base 60 and hexadecimal of any length, stays text).
"""

import re
from typing import Any

import yaml

from service.benchmarks.reading_error import ReadingError

MOST_CHARACTERS = 1_000_000
"""Bound on YAML text: its parser is two orders of magnitude slower than JSON's."""
MOST_NODES = 100_000
DEEPEST_NESTING = 60

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml may be absent
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?")
_SPECIAL = {".inf": "inf", "-.inf": "-inf", "+.inf": "inf", ".nan": "nan"}


def read_yaml(text: str) -> Any:
    """The one document in ``text``; time stamps stay text.

    Raises ReadingError for nesting, nodes, aliases or tags beyond what is taken, yaml.YAMLError for text that is not
    YAML, and ValueError for several documents or a key that is not a scalar.
    """
    root: list[Any] = []
    open_nodes: list[list[Any] | dict[Any, Any]] = [root]
    keys: list[Any] = [_NO_KEY]
    nodes = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise ReadingError("/payload", "YAML aliases are not accepted")
        if isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            open_nodes.pop()
            keys.pop()
            continue
        if not isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            continue
        nodes += 1
        if nodes > MOST_NODES:
            raise ReadingError("/payload", f"has more than {MOST_NODES} YAML values; send it as JSON")
        if event.tag is not None:
            raise ReadingError("/payload", "YAML tags are not accepted")
        if isinstance(event, yaml.ScalarEvent):
            value = _plain(event.value) if event.implicit[0] else event.value
            _put(open_nodes[-1], keys, value)
            continue
        if len(open_nodes) > DEEPEST_NESTING:
            raise ReadingError("/payload", f"nested deeper than {DEEPEST_NESTING} levels")
        node: list[Any] | dict[Any, Any] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        _put(open_nodes[-1], keys, node)
        open_nodes.append(node)
        keys.append(_NO_KEY)
    if len(root) > 1:
        raise ValueError("several documents")
    return root[0] if root else None


_NO_KEY = object()


def _put(node: list[Any] | dict[Any, Any], keys: list[Any], value: Any) -> None:
    """Append to a list; in a mapping keys and values take turns."""
    if isinstance(node, list):
        node.append(value)
    elif keys[-1] is _NO_KEY:
        if isinstance(value, (list, dict)):
            raise ValueError("a key that is not a scalar")
        keys[-1] = value
    else:
        node[keys[-1]] = value
        keys[-1] = _NO_KEY


def _plain(text: str) -> Any:
    """
    >>> _plain("12"), _plain("1.5e3"), _plain("1:20"), _plain("0x1F"), _plain("true"), _plain("~")
    (12, 1500.0, '1:20', '0x1F', True, None)
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    special = _SPECIAL.get(text.lower())
    return text if special is None else float(special)
