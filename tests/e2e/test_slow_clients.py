"""Clients that send slowly, or headers without end, over sockets: they are told so and disconnected; others are served."""

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.bench.server_process import ServerProcess

TOLD_WITHIN_S = 15.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> Iterator[ServerProcess]:
    path = tmp_path_factory.mktemp("slow") / "served.sqlite"
    shutil.copy(seeded_template, path)
    server = ServerProcess(
        f"sqlite:///{path}", path.with_suffix(".log"),
        CLUSTERWRIGHT_HEAD_TIMEOUT_S="1", CLUSTERWRIGHT_BODY_TIMEOUT_S="1", CLUSTERWRIGHT_CONNECTIONS="30",
    )  # fmt: skip
    server.start()
    yield server
    server.stop()


def connect(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=TOLD_WITHIN_S)


def rest(connection: socket.socket) -> bytes:
    """Until the service hangs up."""
    received = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65_536):
            received += chunk
    return received


def drip(connection: socket.socket, piece: bytes) -> None:
    """A piece at a time until the service has had enough."""
    until = time.monotonic() + TOLD_WITHIN_S
    connection.settimeout(0.1)
    while time.monotonic() < until:
        try:
            connection.sendall(piece)
            if not connection.recv(1, socket.MSG_PEEK):
                break
            break
        except TimeoutError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
    assert time.monotonic() < until, "still waited for"
    connection.settimeout(TOLD_WITHIN_S)


HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/estimates HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "piece", "status"),
    [
        (HEAD, b"X: y\r\n", b"408"), (b"GET /", b"a", b"408"), (HEAD + b"X: ", b"y", b"408"),
        (POST + b"Content-Length: 1000\r\n\r\n", b" ", b"408"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", b"408"),
    ],
    ids=["headers", "request-line", "header", "body", "chunks"],
)  # fmt: skip
def test_slow_ones_are_told_and_disconnected(server: ServerProcess, sent: bytes, piece: bytes, status: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(sent)
        drip(connection, piece)
        answer = rest(connection)
    assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]
    assert b"application/problem+json" in answer
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    "sent",
    [HEAD + b"X: " + b"y" * 40_000 + b"\r\n\r\n", HEAD + b"X: y\r\n" * 10_000 + b"\r\n", b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n",
     HEAD + b"X: " + b"y" * 5_000_000, b"G" * 2_000_000],
    ids=["long", "many", "address", "endless", "method"],
)  # fmt: skip
def test_heads_that_are_too_large_are_told(server: ServerProcess, sent: bytes) -> None:
    with connect(server) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(sent)
        answer = rest(connection)
    assert not answer or answer[9:12] in (b"431", b"400"), answer[:200]
    assert httpx.get(f"{server.address}/healthz", timeout=10).status_code == 200


def test_a_silent_connection_is_closed(server: ServerProcess) -> None:
    with connect(server) as connection:
        assert rest(connection) == b""


def test_blank_lines_do_not_keep_a_connection(server: ServerProcess) -> None:
    with connect(server) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        drip(connection, b"\r\n")


def test_more_connections_than_allowed_are_told(server: ServerProcess) -> None:
    held = [connect(server) for _ in range(30)]
    try:
        for one in held:
            one.sendall(HEAD)
        with connect(server) as connection:
            answer = rest(connection)
        assert answer.startswith(b"HTTP/1.1 503"), answer[:200]
    finally:
        for one in held:
            one.close()
    until = time.monotonic() + TOLD_WITHIN_S
    while httpx.get(f"{server.address}/healthz", timeout=10).status_code != 200:
        assert time.monotonic() < until


def test_a_connection_is_kept_for_many_requests(server: ServerProcess) -> None:
    with httpx.Client(base_url=server.address, timeout=TOLD_WITHIN_S) as client:
        sockets = {client.get("/healthz").extensions["network_stream"].get_extra_info("client_addr") for _ in range(5)}
    assert len(sockets) == 1
