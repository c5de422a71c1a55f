"""Sessions fitted to traces that were made of known ones."""

import random
from itertools import count

import numpy as np
import pytest

from solver.traces.fitted_sessions import fitted_chats
from solver.traces.trace import Blocks, Trace

BLOCK = 16


def made(seed: int, *, names: bool, hashes: bool, systems: int = 3, system_blocks: int = 4, chats: int = 400) -> Trace:
    """Chats of 1 to 6 turns, 40 tokens of a user and 60 of a reply each, 30 s apart; each system prompt alike common."""
    rng = random.Random(seed)
    fresh = count(1_000)
    rows: list[tuple[float, int, int, int, list[int]]] = []
    for chat in range(chats):
        system = rng.randrange(systems)
        ids = [system * system_blocks + n for n in range(system_blocks)]
        now, tokens = rng.uniform(0, 4_000), system_blocks * BLOCK
        for _ in range(rng.randint(1, 6)):
            prompt, reply = tokens + 40, 60
            ids = ids + [next(fresh) for _ in range(prompt // BLOCK - len(ids))]
            rows.append((now, prompt, reply, chat, ids))
            tokens, now = prompt + reply, now + rng.expovariate(1 / 30)
    rows.sort(key=lambda row: row[0])
    blocks = Blocks(
        BLOCK,
        np.array([name for row in rows for name in row[4]], dtype=np.int64),
        np.cumsum([0, *[len(row[4]) for row in rows]]).astype(np.int64),
    )
    return Trace(
        np.array([row[1] for row in rows]), np.array([row[2] for row in rows]), np.array([row[0] for row in rows]),
        np.array([row[3] for row in rows]) if names else None, blocks if hashes else None,
    )  # fmt: skip


@pytest.mark.parametrize("names", [True, False])
def test_sessions_are_found_as_they_were_made(names: bool) -> None:
    for seed in range(5):
        found = fitted_chats(made(seed, names=names, hashes=True))
        assert found is not None
        assert found.sessions == 400
        assert found.turns.mean == pytest.approx(3.5, rel=0.08)
        assert found.user.mean == pytest.approx(40, rel=0.02)
        assert found.gap_s == pytest.approx(30, rel=0.1)
        assert (found.opening_tokens, found.openings) == (4 * BLOCK, 3)


def test_by_names_alone_there_is_no_opening() -> None:
    found = fitted_chats(made(1, names=True, hashes=False))
    assert found is not None
    assert (found.sessions, found.opening_tokens, found.openings) == (400, 0, 1)
    assert found.linked_by == "session ids"


def test_requests_that_do_not_grow_are_no_turns() -> None:
    flat = Trace(np.full(9, 50), np.full(9, 10), np.arange(9.0), np.zeros(9, dtype=np.int64))
    assert fitted_chats(flat) is None
    assert fitted_chats(Trace(np.full(9, 50), np.full(9, 10), np.arange(9.0))) is None


def test_one_opening_that_many_share_is_continued_once() -> None:
    """A prompt that is all opening is not the session of everyone who begins alike."""
    ids = [0, 0, 1, 0, 2, 0, 3]
    trace = Trace(
        np.array([16, 40, 40, 40]),
        np.full(4, 3),
        np.arange(4.0),
        blocks=Blocks(16, np.array(ids), np.array([0, 1, 3, 5, 7])),
    )
    found = fitted_chats(trace)
    assert found is not None
    assert found.sessions == 3


def test_without_arrivals_there_are_no_gaps() -> None:
    trace = made(2, names=True, hashes=True)
    found = fitted_chats(Trace(trace.prompt_tokens, trace.output_tokens, None, trace.sessions, trace.blocks))
    assert found is not None
    assert found.gap_s is None
