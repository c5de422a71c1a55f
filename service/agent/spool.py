"""Results wait on disk until the service has acknowledged them.

One file a result, written whole or not at all: to a temporary name, flushed to the disk, then renamed. Waiting files
lie in ``waiting/``; acknowledged ones move to ``sent/`` with the answer, refused ones to ``refused/`` with the reason.
Nothing is deleted.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDERS = ("waiting", "sent", "refused")


def default_folder() -> Path:
    """``$CLUSTERWRIGHT_SPOOL``, else the user's state directory."""
    if named := os.environ.get("CLUSTERWRIGHT_SPOOL"):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "clusterwright" / "spool"


@dataclass(frozen=True)
class SpooledUpload:
    """A result on disk: where it goes, under which key, and its body."""

    file: Path
    path: str
    key: str
    body: dict[str, Any]

    @property
    def what(self) -> str:
        """A few words for messages."""
        context = self.body.get("context") or {}
        return str(context.get("notes") or self.file.stem)[:80]


class Spool:
    """A folder of results. Two agents may share one: a result sent twice is stored once, by its key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def add(self, path: str, body: dict[str, Any]) -> SpooledUpload:
        """Keep a result before anything is sent. Its key is made from its content, so that adding it twice is once."""
        content = json.dumps(body, sort_keys=True)
        key = hashlib.sha256(f"{path}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()
        now = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S%f")
        file = self.folder / "waiting" / f"{now}-{key[:12]}.json"
        for known in (self.folder / "waiting").glob(f"*-{key[:12]}.json"):
            file = known
        _write_whole(file, {"path": path, "key": key, "body": body})
        return SpooledUpload(file, path, key, body)

    def waiting(self) -> Iterator[SpooledUpload]:
        """What is still to be sent, oldest first. A file that cannot be read is set aside, not lost."""
        for file in sorted((self.folder / "waiting").glob("*.json")):
            try:
                kept = json.loads(file.read_text())
                upload = SpooledUpload(file, kept["path"], kept["key"], kept["body"])
            except FileNotFoundError:
                continue  # another agent sent it meanwhile
            except (ValueError, KeyError, TypeError, OSError) as error:
                self._move(file, "refused", {"reason": f"unreadable: {error}"})
                continue
            yield upload

    def sent(self, upload: SpooledUpload, answer: Any) -> None:
        """Acknowledged: keep it with the service's answer."""
        self._move(upload.file, "sent", {"answer": answer})

    def refused(self, upload: SpooledUpload, reason: str) -> None:
        """The service will never take it: keep it with the reason."""
        self._move(upload.file, "refused", {"reason": reason})

    def _move(self, file: Path, name: str, note: dict[str, Any]) -> None:
        _write_whole(self.folder / name / f"{file.stem}.note.json", note)
        file.replace(self.folder / name / file.name)
        _flush_folder(self.folder / name)


def _write_whole(file: Path, value: Any) -> None:
    """The file is there with all of its content, or as it was before, whenever the machine stops."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with temporary.open("w") as out:
        json.dump(value, out)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
    _flush_folder(file.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
