"""The hostile corpus: requests that try to end the service, to keep it busy, or to fill its memory."""

import base64
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.service.bodies import ESTIMATE, RECOMMENDATION, TINY_CONFIG, changed

CONFIGS = Path(__file__).resolve().parents[1] / "fixtures" / "llm-configs"
IMPORTS = ("/v1/benchmarks/import", "/v1/offers/import")
POSTS = (
    "/v1/benchmarks", "/v1/estimates", "/v1/recommendations", "/v1/llms", "/v1/offers", "/v1/fleets", "/v1/measurements",
    "/v1/tco/comparisons", "/v1/device-measurements", *IMPORTS,
)  # fmt: skip
MANY = (10, 1_000, 50_000)
NUMBERS = (
    "0", "-1", "1e-320", "5e-324", "1e308", "1e999", "-1e999", "NaN", "Infinity", "9223372036854775808", "1" + "0" * 400,
    "9" * 5_000, "0.1e1", '"1"', "true", "null", "[]", "{}", '"' + "a" * 100_000 + '"', '"\\u0000"', '"\\ud800"', "1e2147483648",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A request. ``kind``: what of it is hostile."""

    kind: str
    name: str
    path: str
    content: bytes = b""
    method: str = "POST"
    headers: dict[str, str | bytes] = field(default_factory=lambda: {"content-type": "application/json"})


def corpus() -> list[Case]:
    return [*_yaml(), *_csv(), *_json(), *_archives(), *_configs(), *_numbers(), *_headers(), *_tokens(), *_addresses()]


def _files(kind: str, files: Iterator[tuple[str, str]]) -> Iterator[Case]:
    for name, text in files:
        for path in IMPORTS:
            beside = (
                "" if path == IMPORTS[0] else '"valid_from": "2026-11-01T00:00:00Z", "source": "x", "provider": "own", '
            )
            yield Case(kind, name, path, ("{" + beside + '"payload": ' + json.dumps(text) + "}").encode())


def _yaml() -> Iterator[Case]:
    def files() -> Iterator[tuple[str, str]]:
        for n in (61, 1_000, 40_000, 200_000):
            yield f"sequences {n}", "a: " + "[" * n
            yield f"mappings {n}", "a: " + "{a: " * n
            yield f"closed {n}", "a: " + "[" * n + "]" * n
            yield f"block {n}", "---\n" + "- " * n
            yield f"keys {n}", "---\n" + "? " * n
            yield f"mixed {n}", "a: " + "[{a: " * n
        for n in MANY:
            yield f"aliases {n}", "a: &a [1]\n" + "".join(f"b{i}: *a\n" for i in range(n))
            yield f"anchors {n}", "".join(f"a{i}: &a{i} 1\n" for i in range(n))
            yield f"tags {n}", "".join(f"a{i}: !!int 1\n" for i in range(n))
            yield f"base 60, {n}", "a: " + ":".join(["59"] * n)
            yield f"base 60 float {n}", "a: " + ":".join(["59"] * n) + ".5"
            yield f"hexadecimal {n}", "a: 0x" + "f" * n
            yield f"octal {n}", "a: 0" + "7" * n
            yield f"binary {n}", "a: 0b" + "1" * n
            yield f"decimal {n}", "a: " + "1" * n
            yield f"underscores {n}", "a: 1" + "_" * n + "1"
            yield f"float {n}", "a: 1." + "1" * n + "e5"
            yield f"members {n}", "".join(f"a{i}: 1\n" for i in range(n))
            yield f"merges {n}", "a: 1\n" + "<<: {b: 1}\n" * n
            yield f"documents {n}", "---\na: 1\n" * n
            yield f"comments {n}", "a: 1\n" + "# x\n" * n
            yield f"folded {n}", "a: >\n" + "  x\n" * n
            yield f"quoted {n}", 'a: "' + "\\x41" * n + '"'
            yield f"long key {n}", "a" * n + ": 1"
        for text in ("a: !!python/object/apply:os.system [id]", "a: !<tag:yaml.org,2002:binary> x", "%YAML 9.9\n---\na: 1",
                     "? [a]\n: b", "a: b: c", "a: \x00", "a: '", "a: \ufeff", "&a : *a", "a: 2026-11-21T00:00:00Z\nb: .inf"):  # fmt: skip
            yield repr(text[:20]), text

    yield from _files("YAML", files())


def _csv() -> Iterator[Case]:
    def files() -> Iterator[tuple[str, str]]:
        for n in (*MANY, 1_000_000):
            yield f"blocks {n}", "a,b\n1,2\n\n" * n
            yield f"blank lines {n}", "a,b" + "\n" * n
            yield f"rows {n}", "a,b\n" + "1,2\n" * n
            yield f"columns {n}", "," * n
            yield f"open quote {n}", 'a,b\n"' + "x," * n
            yield f"quotes {n}", "a,b\n" + '""' * n
            yield f"carriage returns {n}", "a,b" + "\r" * n
            yield f"spaces {n}", " " * n
            yield f"pipes {n}", "| test | t/s |\n" + "|" * n
            yield f"prices {n}", "offer,usd_per_hour\n" + "own:a:b:on_demand,1\n" * min(n, 400_000)
        yield "formula", "offer,usd_per_hour\n=cmd|' /C calc'!A0:a:b:on_demand,1\n"
        yield "NUL", "a,b\n1,\x00\n"

    yield from _files("CSV", files())


def _json() -> Iterator[Case]:
    bodies: list[tuple[str, bytes]] = []
    for n in (101, 1_000, 100_000, 1_900_000):
        bodies += [(f"lists {n}", b"[" * n), (f"objects {n}", (b'{"a":' * n)[:1_900_000]),
                   (f"closed lists {n}", b"[" * (n // 2) + b"]" * (n // 2)), (f"empty lists {n}", b"[" + b"[]," * (n // 3) + b"0]"),
                   (f"text {n}", b'"' + b"a" * n + b'"'), (f"escapes {n}", b'"' + b'\\"' * (n // 2)),
                   (f"number {n}", b"1" * n), (f"members {n}", b'{"":0' + b',"":0' * (n // 5) + b"}"),
                   (f"unknown fields {n}", ("{" + ",".join(f'"f{i}":0' for i in range(n // 10)) + "}").encode()),
                   (f"blanks {n}", b" " * n)]  # fmt: skip
    bodies += [("latin", b"\xff\xfe"), ("utf-16", "{}".encode("utf-16")), ("utf-32", "{}".encode("utf-32")), ("surrogate", b'"\\ud800"'),
               ("trailing", b"{}{}"), ("nothing", b"")]  # fmt: skip
    for path in POSTS:
        for name, body in bodies:
            yield Case("JSON", name, path, body)
    for name, body in (
        ("lists", b"[]," * 5_000_000),
        ("objects", b'{"":0},' * 2_000_000),
        ("numbers", b"0," * 7_000_000),
    ):
        for path in (*IMPORTS, "/v1/fleets"):
            yield Case("JSON", f"16 MB of {name}", path, b'{"payload": [' + body + b"0]}")


def _archives() -> Iterator[Case]:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"<a>" * 3_000_000)
    entities = '<!DOCTYPE a [<!ENTITY b "' + "x" * 50_000 + '">]><a>' + "&b;" * 5_000 + "</a>"
    for name, data in (("XLSX bomb", made.getvalue()), ("zip", b"PK\x03\x04" * 50_000), ("gzip", b"\x1f\x8b\x08" * 10_000),
                       ("PDF", b"%PDF-1.7" * 1_000), ("pickle", b"\x80\x04cos\nsystem\n(S'id'\ntR."),
                       ("entities", entities.encode())):  # fmt: skip
        for path in IMPORTS:
            for kind in ("application/json", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "text/csv",
                         "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):  # fmt: skip
                yield Case("XLSX", f"{name} as {kind.partition(';')[0]}", path, data, headers={"content-type": kind})
            for text in (data.decode("latin-1"), base64.b64encode(data).decode()):
                yield from (c for c in _files("XLSX", iter([(name, text)])) if c.path == path)


def _configs() -> Iterator[Case]:
    counts = [key for key, value in TINY_CONFIG.items() if isinstance(value, int)]
    for key in counts:
        for number in NUMBERS:
            body = json.dumps({"id": "hostile", "config": TINY_CONFIG | {key: "HERE"}}).replace('"HERE"', number)
            yield Case("HF config", f"{key} {number[:12]}", "/v1/llms", body.encode())
    for path in sorted(CONFIGS.glob("*.json"))[::3]:
        config = json.loads(path.read_text())
        for key in [k for k, v in config.items() if isinstance(v, list | dict)][:2]:
            hostile: tuple[Any, ...] = ([], {}, [[]] * 100_000, ["x"] * 100_000, {"a": {"a": {}}}, None, 10**18)
            for value in hostile:
                body = json.dumps({"id": "hostile", "config": config | {key: value}})
                yield Case("HF config", f"{path.stem}: {key}", "/v1/llms", body.encode())


def _numbers() -> Iterator[Case]:
    places = (
        "traffic/requests_per_s",
        "traffic/prompt_tokens/mean",
        "traffic/prompt_tokens/p95",
        "targets/ttft_ms/p95",
    )
    for number in NUMBERS:
        for place in places:
            body = json.dumps(changed(RECOMMENDATION, f"workloads/0/{place}", "HERE")).replace('"HERE"', number)
            if number not in ("0.1e1", '"1"', "true"):  # right, and planned
                yield Case("numbers", f"{place} {number[:12]}", "/v1/recommendations", body.encode())
        for place in ("layout/tensor_parallel", "load/concurrency", "load/requests", "traffic/output_tokens/high"):
            body = json.dumps({"estimates": [changed(ESTIMATE, place, "HERE")]}).replace('"HERE"', number)
            yield Case("numbers", f"{place} {number[:12]}", "/v1/estimates", body.encode())


def _headers() -> Iterator[Case]:
    for n in (1_000, 30_000, 60_000, 500_000):
        for name in (
            "x-request-id",
            "accept",
            "cookie",
            "idempotency-key",
            "prefer",
            "content-type",
            "origin",
            "x" * min(n, 60_000),
        ):
            yield Case("headers", f"{name[:20]} {n}", "/v1/devices?limit=1", method="GET", headers={name: "a" * n})
    for host in (
        "[::1",
        "[",
        "a b",
        "a,b",
        "evil.example",
        "localhost@evil.example",
        "x" * 300,
        "localhost:",
        "localhost:x",
        "\xff",
    ):
        yield Case(
            "headers", f"host {host[:20]!r}", "/v1/devices/", method="GET", headers={"host": host.encode("latin-1")}
        )
    for value in ("-1", "99999999999999999999", "1,1", "0x10"):
        yield Case(
            "headers", f"last-event-id {value}", "/v1/jobs/job_x/events", method="GET", headers={"last-event-id": value}
        )
    for value in ("wait=1e999", "wait=-1", "wait=" + "9" * 500, "respond-async, " * 500, "wait", "wait=\x7f"):
        yield Case("headers", f"prefer {value[:20]!r}", "/v1/recommendations", b"{}",
                   headers={"prefer": value, "content-type": "application/json"})  # fmt: skip


def _tokens() -> Iterator[Case]:
    for header in ("", "Bearer", "Bearer ", "Basic YTpi", "Bearer " + "x" * 30_000, "Bearer \t", "bearer cw_", "Bearer ' OR 1=1 --",
                   "Bearer \xff", "Digest a=b", "Bearer a b", "Bearer cw_" + "A" * 43):  # fmt: skip
        for method, path in (("GET", "/v1/devices"), ("POST", "/v1/benchmarks"), ("GET", "/metrics")):
            yield Case(
                "tokens",
                f"{header[:20]!r} {path}",
                path,
                method=method,
                headers={"authorization": header.encode("latin-1")},
            )


def _addresses() -> Iterator[Case]:
    for odd in (
        "%00",
        "..%2f..%2fetc%2fpasswd",
        "' OR 1=1 --",
        "x" * 3_000,
        "%F0%9F%92%A9",
        "%ff%fe",
        "a%0d%0aX: y",
        "{}",
        "%",
    ):
        for noun in ("devices", "llms", "offers", "jobs", "recommendations", "benchmarks", "tco/comparisons"):
            yield Case("addresses", f"{noun} {odd[:12]}", f"/v1/{noun}/{odd}", method="GET", headers={})
    for query in ("next=AAAA", "next=" + "A" * 500, "limit=1e9", "limit=99999999999999999999999", "price_as_of=0001-01-01T00:00:00Z",
                  "believed_at=9999-12-31T23:59:59-14:00", "a=b&" * 5_000, "device=" + "x" * 10_000, "next=%00"):  # fmt: skip
        for noun in ("offers", "benchmarks", "jobs"):
            yield Case("addresses", f"{noun}?{query[:20]}", f"/v1/{noun}?{query}", method="GET", headers={})
