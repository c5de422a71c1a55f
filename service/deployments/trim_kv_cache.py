"""Keeps a folder of cached blocks below a size: files used longest ago go first. Written beside deployment files as it stands.

python3 trim_kv_cache.py --folder FOLDER --bytes N [--every SECONDS] [--pid PID] [--once]

For engines whose tier of files deletes nothing. Several may trim one folder. When a file was used last is when it was read or written
last; on file systems that do not note reads it is when it was written. Stops with the process --pid, where one is given.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator

KEPT_SHARE = 0.9
"""Of the bytes allowed, what is left after trimming: engines write on meanwhile."""


def files_of(folder: str) -> Iterator[tuple[float, int, str]]:
    """(when used last, bytes, path) of every file under a folder; links are left alone, and so is what disappears meanwhile."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from files_of(entry.path)
            elif entry.is_file(follow_symlinks=False):
                known = entry.stat(follow_symlinks=False)
                yield max(known.st_atime, known.st_mtime), known.st_size, entry.path
        except OSError:
            continue


def trim(folder: str, most_bytes: int) -> int:
    """Delete what was used longest ago where the folder holds more than ``most_bytes``; bytes deleted."""
    found = sorted(files_of(folder))
    held = sum(size for _, size, _ in found)
    if held <= most_bytes:
        return 0
    deleted = 0
    for _, size, path in found:
        if held - deleted <= KEPT_SHARE * most_bytes:
            break
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass  # another one trims the folder too
        except OSError as error:
            sys.stderr.write(f"{path}: {error.strerror}\n")
            continue
        deleted += size
    return deleted


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main(words: "list[str] | None" = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--once", action="store_true")
    asked = parser.parse_args(words)
    if asked.bytes <= 0 or asked.every <= 0.0:
        parser.error("--bytes and --every are above 0")
    while True:
        trim(asked.folder, asked.bytes)
        if asked.once or (asked.pid is not None and not is_alive(asked.pid)):
            return
        time.sleep(asked.every)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
