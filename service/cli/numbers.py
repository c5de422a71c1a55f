"""Numbers as they are stated in options."""

import argparse
import math


def number(text: str) -> float:
    """A number that JSON has. Raises ArgumentTypeError for what is none, not-a-number and infinity among them.

    >>> number("0.5")
    0.5
    >>> number("inf")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: 'inf' is not a finite number
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a finite number")
    return found
