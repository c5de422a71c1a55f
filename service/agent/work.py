"""``agent work``: report this host, take wanted measurements, measure, upload; until stopped."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from service.agent import VERSION
from service.agent.allowed_arguments import checked_arguments, checked_id, checked_model
from service.agent.bench import (
    WARM_UP_REQUESTS,
    LoadPoint,
    NothingMeasuredError,
    Prompts,
    clients_of,
    measure,
    summary,
    warm_up,
)
from service.agent.client import AccessRefusedError, RequestRefusedError, ServiceClient, ServiceUnreachableError
from service.agent.deployment import ask_engine
from service.agent.launch import EngineProcess, EngineStart, LaunchError, serve_command
from service.agent.lengths import FixedTokens, LengthDistribution, LognormalTokens, UniformTokens
from service.agent.load import ClosedLoop, Load, OpenLoop
from service.agent.spool import Spool
from service.agent.stream import Endpoint
from service.agent.upload import upload_spool
from service.wire.measurements import MeasurementIn

HEARTBEATS_PER_LEASE = 3


class TaskLeaseLostError(Exception):
    """Another agent may have the measurement by now."""


class Heartbeat:
    """Keeps a lease from a thread of its own while the measurement runs. ``lost`` says that it could not."""

    def __init__(self, client: ServiceClient, measurement_id: str, lease: str, lease_s: float) -> None:
        self.lost = threading.Event()
        self._over = threading.Event()
        self._client = client
        self._path = f"/v1/measurements/{measurement_id}/heartbeat"
        self._body = {"lease": lease, "lease_s": lease_s}
        self._every_s = lease_s / HEARTBEATS_PER_LEASE
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=5.0)

    def _beat(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self._client.request("POST", self._path, self._body)
            except (RequestRefusedError, AccessRefusedError):
                self.lost.set()
                return
            except ServiceUnreachableError:
                continue  # the next beat may come through; if none does, the lease runs out


@dataclass
class Worker:
    """An agent on one host. ``endpoint``: an engine that runs already; without it, engines are started."""

    client: ServiceClient
    spool: Spool
    agent_id: str
    device: str
    devices: int
    registration: dict[str, Any]
    log_folder: Path
    say: Callable[[str], None]
    endpoint: str | None = None
    model: str | None = None
    """Path or id to serve instead of the catalog's Hugging Face id."""
    launch_arguments: tuple[str, ...] = ()
    allowed_arguments: tuple[str, ...] = ()
    """Engine options that the service may set besides those that only change speed."""
    port: int = 8300
    lease_s: float = 600.0
    poll_s: float = 15.0
    timeout_s: float = 600.0

    def run(self, stop: threading.Event, once: bool = False) -> int:
        """Work until ``stop``; with ``once``, until the queue has nothing. Returns how many measurements were taken."""
        taken = 0
        while not stop.is_set():
            try:
                self.client.request("PUT", f"/v1/agents/{self.agent_id}", self.registration)
                upload_spool(self.spool, self.client, within_s=0.0, say=self.say)
                lease = self.client.request("POST", "/v1/measurements/lease", self._capabilities())
            except ServiceUnreachableError as error:
                self.say(f"{error}; trying again in {self.poll_s:.0f} s")
                stop.wait(self.poll_s)
                continue
            if lease is None:
                if once:
                    break
                stop.wait(self.poll_s)
                continue
            taken += 1
            self._work(lease)
        return taken

    def _capabilities(self) -> dict[str, Any]:
        return {
            "agent": {"id": self.agent_id, "version": VERSION},
            "device": self.device,
            "devices": self.devices,
            "lease_s": self.lease_s,
        }

    def _work(self, lease: dict[str, Any]) -> None:
        """One measurement, from lease to answer. Whatever goes wrong is told to the queue, and work goes on."""
        try:
            measurement_id = checked_id(lease["measurement"]["id"])
            token = str(lease["lease"])
        except (LaunchError, KeyError, TypeError) as error:
            self.say(str(error))
            return
        path = f"/v1/measurements/{measurement_id}"
        try:
            wanted = checked_wanted(lease["measurement"].get("wanted"))
            self.say(f"{measurement_id}: {wanted['llm']} on {wanted['devices']} × {wanted['device']}")
            with Heartbeat(self.client, measurement_id, token, self.lease_s) as beat:
                ids = self._measure(wanted, measurement_id, beat)
            answer: tuple[str, dict[str, Any]] = ("complete", {"benchmarks": ids})
        except TaskLeaseLostError:
            self.say(f"{measurement_id}: the lease is lost; what was measured stays uploaded")
            return
        except (LaunchError, NothingMeasuredError, ValueError, OSError) as error:
            self.say(f"{measurement_id}: {error}")
            answer = ("fail", {"reason": f"{type(error).__name__}: {error}"[:2_000] or "unknown"})
        try:
            self.client.request_until_answered(
                "POST", f"{path}/{answer[0]}", answer[1] | {"lease": token}, within_s=self.lease_s
            )
        except (RequestRefusedError, ServiceUnreachableError) as error:
            self.say(f"{measurement_id}: {error}")

    def _measure(self, wanted: dict[str, Any], name: str, beat: Heartbeat) -> list[str]:
        """Ids of the uploaded results. Each load is uploaded as soon as it is measured."""
        llm = self.client.request_until_answered("GET", f"/v1/llms/{wanted['llm']}", within_s=self.lease_s)
        if not isinstance(llm, dict):
            raise LaunchError("refused what the service says of the model: not an object")
        if self.endpoint is not None:
            return self._drive(self.endpoint, wanted, llm, beat)
        layout, precision = wanted["layout"], wanted["precision"]
        deployment = EngineStart(
            engine=wanted["engine"]["name"],
            model=self.model or checked_model(llm.get("hugging_face_id") or wanted["llm"]),
            weights=precision["weights"],
            kv_cache=precision["kv_cache"],
            **{degree: value for degree, value in layout.items() if value is not None},
        )
        extra = [*self.launch_arguments, *checked_arguments(wanted["engine"]["arguments"], self.allowed_arguments)]
        command = serve_command(deployment, self.port, extra)
        with EngineProcess(command, self.port, self.log_folder / f"{name}.log") as engine:
            return self._drive(engine.base_url, wanted, llm, beat, tuple(command[3:]))

    def _drive(
        self,
        base_url: str,
        wanted: dict[str, Any],
        llm: dict[str, Any],
        beat: Heartbeat,
        arguments: tuple[str, ...] = (),
    ) -> list[str]:
        facts = ask_engine(base_url)
        endpoint = Endpoint(base_url, facts.served_model or wanted["llm"])
        traffic = wanted["traffic"]
        prompts = Prompts(lengths(traffic["prompt_tokens"]), lengths(traffic["output_tokens"]), checked_vocabulary(llm))
        points = [LoadPoint(load(asked), seed=number) for number, asked in enumerate(wanted["loads"], 1)]
        warm_up(endpoint, prompts, WARM_UP_REQUESTS, self.timeout_s, clients_of(points))
        engine = wanted["engine"] | {"version": facts.version or wanted["engine"]["version"]}
        if arguments:
            engine["arguments"] = list(arguments)
        context = {name: wanted[name] for name in ("device", "devices", "llm", "layout", "precision")} | {
            "engine": engine,
            "agent": {"id": self.agent_id, "version": VERSION},
            "driver": self.registration.get("probe", {}).get("driver"),
        }
        ids = []
        for point in points:
            if beat.lost.is_set():
                raise TaskLeaseLostError
            upload, run = measure(endpoint, prompts, point, context, self.timeout_s, None)
            self.say(summary(point.name, upload, run))
            kept = self.spool.add("/v1/benchmarks", upload)
            try:
                answer = self.client.request_until_answered(
                    "POST", kept.path, kept.body, key=kept.key, within_s=self.lease_s
                )
            except RequestRefusedError as error:
                self.spool.refused(kept, str(error))
                raise ValueError(f"the service refused the result: {error}") from None
            self.spool.sent(kept, answer)
            ids.append(answer["id"])
        return ids


MOST_CLIENTS = 16_384
MOST_REQUESTS = 1_000_000
MOST_TOKENS = 2_000_000
MOST_VOCABULARY = 10_000_000


def checked_wanted(stated: Any) -> dict[str, Any]:
    """A measurement in the shape the API has for it, and no more than a host can send. Raises LaunchError."""
    try:
        wanted = MeasurementIn.model_validate(stated)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise LaunchError(f"refused the measurement: {where}: {first['msg']}") from None
    for one in wanted.loads:
        clients = one.concurrency if one.kind == "closed" else one.max_concurrency or 1
        if clients > MOST_CLIENTS or (one.requests or 1) > MOST_REQUESTS:
            raise LaunchError(f"refused the measurement: more than {MOST_CLIENTS} clients or {MOST_REQUESTS} requests")
    for name in ("prompt_tokens", "output_tokens"):
        for key, value in getattr(wanted.traffic, name).model_dump().items():
            if key in ("tokens", "high", "mean", "p95") and value > MOST_TOKENS:
                raise LaunchError(f"refused the measurement: {name} of more than {MOST_TOKENS}")
    return wanted.model_dump(mode="json")


def checked_vocabulary(llm: dict[str, Any]) -> int:
    """Token ids are drawn below it. Raises LaunchError."""
    size = llm.get("vocabulary")
    if type(size) is not int or not 0 < size <= MOST_VOCABULARY:
        raise LaunchError(f"refused a vocabulary of {str(size)[:40]} tokens")
    return size


def lengths(stated: dict[str, Any]) -> LengthDistribution:
    """A distribution of the wire as one to draw from. Raises ValueError for one that only describes."""
    match stated["distribution"]:
        case "fixed":
            return FixedTokens(stated["tokens"])
        case "uniform":
            return UniformTokens(stated["low"], stated["high"])
        case "lognormal":
            return LognormalTokens(stated["mean"], stated["p95"], maximum=10 * round(stated["p95"]))
        case other:
            raise ValueError(f"lengths stated as {other} cannot be drawn from")


def load(stated: dict[str, Any]) -> Load:
    """A load of the wire as one to run."""
    requests = stated.get("requests")
    if stated["kind"] == "closed":
        return ClosedLoop(stated["concurrency"], requests or 3 * stated["concurrency"])
    return OpenLoop(stated["requests_per_s"], requests or 200)


def run_worker(worker: Worker, options: argparse.Namespace) -> int:
    """Work until interrupted; returns the exit code."""
    stop = threading.Event()
    try:
        worker.run(stop, once=options.once)
    except KeyboardInterrupt:
        stop.set()
    except AccessRefusedError as error:
        worker.say(str(error))
        return 3
    return 0
