"""Readers for ``service.sandboxed_reading`` that do what a hostile file may make a parser do."""

import os
import signal
from collections.abc import Mapping
from typing import Any


def dies(_options: Mapping[str, Any], _payload: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def never_ends(_options: Mapping[str, Any], _payload: Any) -> Any:
    while True:
        pass


def takes_memory(_options: Mapping[str, Any], _payload: Any) -> Any:
    return len(bytearray(1_000_000_000))


def writes(_options: Mapping[str, Any], payload: Any) -> Any:
    with open(payload, "w", encoding="ascii") as file:
        file.write("written")


def counts(_options: Mapping[str, Any], payload: Any) -> Any:
    return len(payload)
