"""Command lines as words, some of which are variables, and how shells, Compose files and Kubernetes write them."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Variable:
    """A word that is known where the command runs only. after: text that follows it in the same word."""

    name: str
    after: str = ""


Word = str | Variable


def shell_command(words: Iterable[Word]) -> str:
    """One line of POSIX shell; literal words are quoted.

    >>> shell_command(["vllm", "serve", "a b", "--port", Variable("PORT")])
    'vllm serve \\'a b\\' --port "${PORT}"'
    """
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: Word) -> str:
    return f'"${{{word.name}}}"{word.after}' if isinstance(word, Variable) else shlex.join([word])


def kubernetes_words(words: Iterable[Word]) -> list[str]:
    """As ``command`` of a container: ``$(NAME)`` is expanded there, ``$$`` is a dollar sign.

    >>> kubernetes_words(["$(x)", Variable("LWS_LEADER_ADDRESS")])
    ['$$(x)', '$(LWS_LEADER_ADDRESS)']
    """
    return [f"$({w.name}){w.after}" if isinstance(w, Variable) else w.replace("$", "$$") for w in words]


def compose_words(words: Iterable[Word]) -> list[str]:
    """As ``command`` of a Compose service: ``${NAME}`` is expanded there, ``$$`` is a dollar sign."""
    return [
        f"${{{w.name}:?}}{w.after}" if isinstance(w, Variable) else w.replace("$", "$$") for w in words
    ]  # fmt: skip


def shell_comment(text: str) -> str:
    """A comment line; whatever would end it is taken out.

    >>> shell_comment("a\\nrm -rf /")
    '# a rm -rf /'
    """
    return "# " + re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", text).strip()


def yaml_documents(documents: Iterable[Mapping[str, Any]]) -> str:
    """YAML of one or several documents, keys in the order given."""
    dumped = yaml.dump_all(
        list(documents), Dumper=_Plain, sort_keys=False, default_flow_style=False, allow_unicode=False, width=1000
    )
    return str(dumped)


def json_document(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


class _Plain(yaml.SafeDumper):
    """Without anchors and aliases, which not every reader takes."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the base's signature
        return True


def label_name(text: str, number: int) -> str:
    """A DNS label for the ``number``-th thing, readable and unlike every other.

    >>> label_name("Chat & RAG", 2)
    'chat-rag-2'
    >>> label_name("聊天", 1)
    'workload-1'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30].strip("-")
    if not slug or not slug[0].isalpha():
        slug = f"workload-{slug}".rstrip("-")
    return f"{slug}-{number}"
