"""The Prefer header (RFC 7240): whether a client wants an answer later, or how long it would wait for it."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?')


@dataclass(frozen=True)
class Preference:
    """respond_async: answer 202 at once. wait_s: how long the client would wait; None where it does not say."""

    respond_async: bool = False
    wait_s: float | None = None


def parse_prefer(header: str) -> Preference:
    """Preferences nobody knows, and malformed ones, are ignored, as the RFC wants.

    >>> parse_prefer("respond-async, wait=10")
    Preference(respond_async=True, wait_s=10.0)
    >>> parse_prefer('return=minimal; foo="a, b"')
    Preference(respond_async=False, wait_s=None)
    """
    respond_async, wait_s = False, None
    for preference in re.sub(r'"[^"]*[,;][^"]*"', '""', header).split(","):
        stated = preference.split(";")[0].strip().lower()
        found = WAIT.fullmatch(stated)
        respond_async = respond_async or stated == "respond-async"
        if found is not None and wait_s is None:
            wait_s = float(found[1])
    return Preference(respond_async, wait_s)


def preference_of(prefer: Annotated[list[str] | None, Header()] = None) -> Preference:
    return parse_prefer(", ".join(prefer or ()))


Prefer = Annotated[Preference, Depends(preference_of)]
