"""Uploads that arrive together share a transaction: nobody's error, repeat or revoked token touches another's."""

import asyncio
import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from service.access import Caller, RecentCallers, Role
from service.benchmarks.intake import Submission, canonical_run, check
from service.benchmarks.names import CatalogNames
from service.benchmarks.storing import Pending, Taken, prepare, store
from service.database import Database
from service.group_commit import GroupCommit
from service.problems import ConflictError, ProblemError, UnavailableError
from service.tokens.create import revoke_token
from service.wire.benchmarks import BenchmarkUpload
from tests.conftest import NOW, FixedClock
from tests.service.test_benchmarks import RUN

numbers = iter(range(1_000_000))


@pytest.fixture
def database(seeded_url: str) -> Iterator[Database]:
    database = Database(seeded_url)
    yield database
    database.close()


class Writer:
    """Doubles numbers. The first transaction waits for ``go``; meanwhile the others gather."""

    def __init__(self, errors: dict[int, Exception] | None = None) -> None:
        self.groups: list[list[int]] = []
        self.began, self.go = threading.Event(), threading.Event()
        self.errors = errors or {}

    def __call__(self, _session: Session, works: Sequence[int]) -> Sequence[int | ProblemError]:
        self.groups.append(list(works))
        self.began.set()
        self.go.wait(10)
        for work in works:
            if work in self.errors and not isinstance(self.errors[work], ProblemError):
                raise self.errors[work]
        answers: list[int | ProblemError] = []
        for work in works:
            error = self.errors.get(work)
            answers.append(error if isinstance(error, ProblemError) else 2 * work)
        return answers


def together(database: Database, writer: Writer, works: Sequence[int]) -> list[Any]:
    """The answers to works of which all but the first arrive while the first is being written."""

    async def run() -> list[Any]:
        commits: GroupCommit[int, int] = GroupCommit(database, writer, "test")
        commits.start()
        answers = [asyncio.ensure_future(commits.add(work)) for work in works]
        await asyncio.to_thread(writer.began.wait, 10)  # all have been added by then: adding waits for nothing
        writer.go.set()
        try:
            return await asyncio.gather(*answers, return_exceptions=True)
        finally:
            commits.close()

    return asyncio.run(run())


class TestGroups:
    def test_what_waits_is_written_together_and_in_order(self, database: Database) -> None:
        writer = Writer()
        assert together(database, writer, range(6)) == [0, 2, 4, 6, 8, 10]
        assert [work for group in writer.groups for work in group] == list(range(6))
        assert len(writer.groups) <= 3  # the first alone or with a few, then the rest

    def test_an_error_is_its_own(self, database: Database) -> None:
        writer = Writer({3: RuntimeError("three")})
        answers = together(database, writer, range(6))
        assert [a for a in answers if not isinstance(a, RuntimeError)] == [0, 2, 4, 8, 10]
        assert str(answers[3]) == "three"

    def test_a_refusal_undoes_nothing(self, database: Database) -> None:
        writer = Writer({3: ConflictError("three")})
        answers = together(database, writer, range(6))
        assert isinstance(answers.pop(3), ConflictError)
        assert answers == [0, 2, 4, 8, 10]
        assert [work for group in writer.groups for work in group] == list(range(6))  # nothing was written twice

    def test_a_database_out_of_reach_is_asked_once_for_all(self, database: Database) -> None:
        writer = Writer({3: OperationalError("insert", {}, Exception("gone"))})
        answers = together(database, writer, range(6))
        assert isinstance(answers[3], OperationalError)
        assert len(writer.groups) <= 3

    def test_what_waits_at_the_end_is_written_and_nothing_after(self, database: Database) -> None:
        async def run() -> list[int]:
            writer = Writer()
            writer.go.set()
            commits: GroupCommit[int, int] = GroupCommit(database, writer, "test")
            waiting = [asyncio.ensure_future(commits.add(work)) for work in range(5)]
            await asyncio.sleep(0)
            commits.start()
            commits.close()
            with pytest.raises(UnavailableError):
                await commits.add(9)
            return list(await asyncio.gather(*waiting))

        assert asyncio.run(run()) == [0, 2, 4, 6, 8]

    def test_a_client_that_left_does_not_stop_the_others(self, database: Database) -> None:
        async def run() -> tuple[bool, int]:
            writer = Writer()
            commits: GroupCommit[int, int] = GroupCommit(database, writer, "test")
            commits.start()
            left, stays = (asyncio.ensure_future(commits.add(work)) for work in (1, 2))
            await asyncio.to_thread(writer.began.wait, 10)
            left.cancel()
            writer.go.set()
            answer = await stays
            commits.close()
            return left.cancelled(), answer

        assert asyncio.run(run()) == (True, 4)


def an_upload(database: Database, notes: str, key: str | None = None) -> Pending:
    document = copy.deepcopy(RUN)
    document["context"]["notes"] = notes
    upload = BenchmarkUpload.model_validate(document)
    checked = check(canonical_run(upload), NOW, CatalogNames().fresh(database), None)
    return prepare(
        Caller("tok_test", Role.agent), Submission("tok_test", key, upload.model_dump(mode="json"), NOW), checked
    )


def stored(database: Database, *uploads: Pending) -> list[Taken | ProblemError]:
    with database.writing() as session:
        return store(session, uploads)


def records(database: Database, notes: str) -> int:
    with database.reading() as session:
        documents = session.connection().execute(text("SELECT document FROM benchmark")).scalars()
        return sum(f'"{notes}"' in str(document).replace("'", '"') for document in documents)


class TestStore:
    def test_the_same_content_twice_in_one_group_is_one_record(self, database: Database) -> None:
        notes = f"twice {next(numbers)}"
        first, again = stored(database, an_upload(database, notes), an_upload(database, notes))
        assert isinstance(first, Taken)
        assert isinstance(again, Taken)
        assert (first.is_new, again.is_new) == (True, False)
        assert first.runs == again.runs
        assert records(database, notes) == 1
        (later,) = stored(database, an_upload(database, notes))
        assert isinstance(later, Taken)
        assert (later.is_new, later.runs) == (False, first.runs)

    def test_one_key_for_two_bodies_in_one_group(self, database: Database) -> None:
        number = next(numbers)
        notes = [f"key {number} {part}" for part in "ab"]
        first, second, other = stored(
            database,
            an_upload(database, notes[0], f"k{number}"),
            an_upload(database, notes[1], f"k{number}"),
            an_upload(database, notes[1], f"other{number}"),
        )
        assert isinstance(first, Taken)
        assert isinstance(second, ConflictError)
        assert isinstance(other, Taken)
        assert other.is_new
        (replayed,) = stored(database, an_upload(database, notes[1], f"k{number}"))
        assert isinstance(replayed, ConflictError)

    def test_two_keys_for_one_body_in_one_group(self, database: Database) -> None:
        number = next(numbers)
        notes = f"keys {number}"
        answers = stored(database, *(an_upload(database, notes, f"{part}{number}") for part in "abc"))
        assert [isinstance(a, Taken) and a.is_new for a in answers] == [True, False, False]
        for part in "abc":
            (conflict,) = stored(database, an_upload(database, "another body", f"{part}{number}"))
            assert isinstance(conflict, ConflictError)

    def test_groups_that_hold_the_same_uploads_in_another_order_do_not_lock_each_other_out(
        self, database: Database
    ) -> None:
        number = next(numbers)
        uploads = [[an_upload(database, f"order {number} {n}", f"o{number}-{n}") for n in range(20)] for _ in range(4)]
        answers: list[Taken | ProblemError] = []
        threads = [
            threading.Thread(target=lambda group=group: answers.extend(stored(database, *group)))
            for group in (uploads[0], uploads[1][::-1], uploads[2], uploads[3][::-1])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(isinstance(a, Taken) for a in answers)
        assert sum(isinstance(a, Taken) and a.is_new for a in answers) == 20
        assert len(answers) == 80


class TestAdmission:
    def test_a_token_revoked_after_it_was_seen_stores_nothing(
        self, client: TestClient, app: FastAPI, clock: FixedClock, with_role: Callable[[str], dict[str, str]]
    ) -> None:
        app.state.recent_callers = RecentCallers(renew_after_s=3600.0, most_s=3600.0)
        headers, others = with_role("agent"), with_role("agent")
        run = copy.deepcopy(RUN)
        run["context"]["notes"] = f"revoked {next(numbers)}"
        assert client.post("/v1/benchmarks", json=run, headers=headers).status_code == 201
        with app.state.database.writing() as session:
            row = session.connection().execute(
                text("SELECT id FROM token WHERE revoked_at IS NULL ORDER BY id LIMIT 1")
            ).scalar_one()  # fmt: skip
            revoke_token(session, row, clock)
        run["context"]["notes"] = f"revoked {next(numbers)}"
        answers = [client.post("/v1/benchmarks", json=run, headers=each) for each in (headers, others)]
        assert sorted(answer.status_code for answer in answers) == [201, 401]
        refused = next(answer for answer in answers if answer.status_code == 401)
        assert refused.json()["detail"] == "the token is unknown or revoked"

    def test_once_there_is_a_token_nobody_stores_without(
        self, client: TestClient, app: FastAPI, with_role: Callable[[str], dict[str, str]]
    ) -> None:
        app.state.recent_callers = RecentCallers(renew_after_s=3600.0, most_s=3600.0)
        run = copy.deepcopy(RUN)
        run["context"]["notes"] = f"anonymous {next(numbers)}"
        assert client.post("/v1/benchmarks", json=run).status_code == 201
        with_role("agent")
        run["context"]["notes"] = f"anonymous {next(numbers)}"
        assert client.post("/v1/benchmarks", json=run).status_code == 401
