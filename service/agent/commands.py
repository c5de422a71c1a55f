"""What each command does, once its arguments are read."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.agent import VERSION, torch_measure
from service.agent.bench import (
    LoadPoint,
    Prompts,
    check_burst_options,
    clients_of,
    keep_records,
    measure,
    points_of,
    say,
    summary,
    warm_up,
)
from service.agent.client import ServiceClient, ServiceUnreachableError
from service.agent.deployment import ask_engine, context_of
from service.agent.launch import (
    EngineProcess,
    EngineStart,
    LaunchError,
    RecommendedWork,
    recommended_work,
    serve_command,
)
from service.agent.probe import HostProbe, lines
from service.agent.probe import probe as probe_host
from service.agent.session_bench import (
    check_replica_options,
    check_session_options,
    measure_sessions,
    session_points,
    session_prompts,
)
from service.agent.session_load import Replicas
from service.agent.spool import Spool
from service.agent.stream import Endpoint
from service.agent.upload import UploadOutcome, upload_spool
from service.agent.work import Worker, lengths, run_worker
from service.wire.device_names import match_device

SWEEP = (1, 4, 16, 64, 256)
OK, IMPERFECT, OUT_OF_REACH = 0, 1, 3


def probe(options: argparse.Namespace) -> int:
    """Show this host; with --measure also what its devices do, with --upload also to the service."""
    found = probe_host()
    if not options.offline:
        _name_devices(found, options)
    measured = _measurements(found) if options.measure else []
    if options.json:
        _print(found.as_json() | {"measurements": measured})
    else:
        sys.stdout.write("\n".join(lines(found)) + "\n")
        for figures in measured:
            _print(figures)
    if options.upload and measured:
        spool = Spool(options.spool)
        for figures in measured:
            spool.add("/v1/device-measurements", figures)
        return _exit_code(_send(options, spool))
    return IMPERFECT if found.problems else OK


def _name_devices(found: HostProbe, options: argparse.Namespace) -> None:
    """Catalog ids from the service's device list; without the service the devices keep their drivers' names."""
    client = _client(options)
    memory: dict[str, float | None] = {}
    try:
        cursor: str | None = None
        while True:
            page = client.request("GET", "/v1/devices", params={"limit": 500} | ({"next": cursor} if cursor else {}))
            memory |= {row["id"]: row["memory_gib"] for row in page["items"]}
            cursor = page["next"]
            if cursor is None:
                break
    except ServiceUnreachableError as error:
        found.problems.append(f"catalog names are unknown: {error}")
        return
    finally:
        client.close()
    found.devices = [
        dataclasses.replace(d, catalog_id=match_device(d.name, memory, None if d.partitioned else d.memory_gib))
        for d in found.devices
    ]


def _measurements(found: HostProbe) -> list[dict[str, Any]]:
    """Micro-measurements of the first device of each catalog id; all-reduce over 2, 4 and 8 of them."""
    if not torch_measure.torch_is_here():
        found.problems.append("PyTorch with a usable device is not installed: nothing measured")
        return []
    measured = []
    for catalog_id in sorted({d.catalog_id for d in found.devices if d.catalog_id}):
        same = [d for d in found.devices if d.catalog_id == catalog_id]
        figures = torch_measure.measure_device(same[0].index)
        reduces = []
        for world_size in (2, 4, 8):
            if world_size > len(same):
                break
            try:
                reduces += torch_measure.measure_all_reduce(world_size)
            except (RuntimeError, OSError) as error:
                found.problems.append(str(error))
        measured.append({"device": catalog_id, "driver": same[0].driver, "all_reduce": reduces} | figures)
    return measured


def bench(options: argparse.Namespace) -> int:
    """Measure every point asked for. A point that fails does not lose the others."""
    check_replica_options(options)
    check_burst_options(options)
    if options.sessions is not None:
        return _bench_sessions(options)
    work = _recommended(options)
    prompts = _prompts(options, work)
    concurrencies = [*options.concurrency, *(SWEEP if options.sweep else ())]
    rates = list(options.rate)
    if work is not None and not concurrencies and not rates:
        rates = [work.requests_per_s]
    points = points_of(concurrencies, rates, options.requests, options.seed, options.at_once)
    if not points:
        raise ValueError("nothing to measure: give --concurrency, --rate, --sweep or --recommendation")
    spool = Spool(options.spool)
    failed = 0
    with _endpoint(options, work) as (endpoint, context):
        warm_up(endpoint, prompts, options.warm_up, options.timeout_s, clients_of(points))
        for point in points:
            failed += not _measure_point(endpoint, prompts, point, context, options, spool)
    if options.no_upload:
        return IMPERFECT if failed else OK
    outcome = _send(options, spool)
    return max(_exit_code(outcome), IMPERFECT if failed else OK)


def _bench_sessions(options: argparse.Namespace) -> int:
    """Hold the sessions of every point asked for, print what was seen and record their turns."""
    check_session_options(options)
    sent, prompts = session_prompts(options, options.vocabulary_tokens or _vocabulary(options, options.llm))
    points = session_points(options)
    failed = 0
    with _endpoint(options, None) as (endpoint, context):
        endpoints = (endpoint, *(dataclasses.replace(endpoint, base_url=url) for url in options.replica))
        for one in endpoints:
            warm_up(one, prompts, options.warm_up, options.timeout_s, max(point.warm_up_clients for point in points))
        for point in points:
            replicas = Replicas(endpoints, options.routing or "sticky", point.seed)
            seen, run = measure_sessions(replicas, sent, point, context, options.timeout_s)
            say(summary(point.load.name, seen, run))
            if options.records is not None:
                keep_records(options.records, point.load.name, run)
            _print(seen)
            failed += bool(run.failed)
    return IMPERFECT if failed else OK


@contextmanager
def _endpoint(options: argparse.Namespace, work: RecommendedWork | None) -> Iterator[tuple[Endpoint, dict[str, Any]]]:
    """The engine to drive, and who, what and where is measured."""
    with _engine(options, work) as (base_url, arguments):
        facts = ask_engine(base_url, options.api_key)
        served = options.model if options.model and not options.launch else facts.served_model
        if served is None:
            raise ValueError("the engine does not say which model it serves: give --model")
        endpoint = Endpoint(base_url, served, options.api, options.api_key)
        yield endpoint, _context(options, work, facts.version, arguments)


def _measure_point(
    endpoint: Endpoint,
    prompts: Prompts,
    point: LoadPoint,
    context: dict[str, Any],
    options: argparse.Namespace,
    spool: Spool,
) -> bool:
    """Measure and keep one point; says whether all of its requests were answered."""
    try:
        upload, run = measure(endpoint, prompts, point, context, options.timeout_s, options.gpu)
    except (ValueError, RuntimeError) as error:
        say(f"{point.name}: {error}")
        return False
    say(summary(point.name, upload, run))
    if options.records is not None:
        keep_records(options.records, point.name, run)
    if options.no_upload:
        _print(upload)
    else:
        spool.add("/v1/benchmarks", upload)
    return not run.failed


def _recommended(options: argparse.Namespace) -> RecommendedWork | None:
    if options.recommendation is None:
        return None
    client = _client(options)
    try:
        found = client.request_until_answered(
            "GET", f"/v1/recommendations/{options.recommendation}", within_s=options.within_s
        )
    finally:
        client.close()
    return recommended_work(found, options.device, options.workload)


def _prompts(options: argparse.Namespace, work: RecommendedWork | None) -> Prompts:
    """Lengths from the options, else from the recommended workload; the vocabulary from the catalog."""
    traffic = work.workload["traffic"] if work is not None else {}
    if traffic and traffic["prompt_tokens"] is None:
        raise ValueError("requests of this recommendation are turns of sessions: state them with --sessions instead")
    prompt = options.prompt_tokens or (lengths(traffic["prompt_tokens"]) if traffic else None)
    output = options.output_tokens or (lengths(traffic["output_tokens"]) if traffic else None)
    texts: tuple[str, ...] = ()
    if options.prompts is not None:
        texts = tuple(line for line in options.prompts.read_text().splitlines() if line.strip())
        prompt = prompt or lengths({"distribution": "fixed", "tokens": 1})
    if options.api == "chat" and not texts:
        raise ValueError("the chat API takes text: give --prompts FILE")
    if prompt is None or output is None:
        raise ValueError("give --prompt-tokens and --output-tokens")
    vocabulary = options.vocabulary_tokens
    llm = options.llm or (work.workload["llm"] if work is not None else None)
    if vocabulary is None and not texts:
        vocabulary = _vocabulary(options, llm)
    return Prompts(prompt, output, vocabulary, texts)


def _vocabulary(options: argparse.Namespace, llm: str | None) -> int | None:
    """Token ids that the catalog's model knows; None where no model is named."""
    if llm is None:
        return None
    client = _client(options)
    try:
        found = client.request_until_answered("GET", f"/v1/llms/{llm}", within_s=options.within_s)
    finally:
        client.close()
    return int(found["vocabulary"])


@contextmanager
def _engine(options: argparse.Namespace, work: RecommendedWork | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The address of the engine, and the arguments it was started with when it was started here."""
    if not options.launch:
        if options.endpoint is None:
            raise ValueError("give --endpoint, or --launch to start an engine")
        yield options.endpoint, tuple(options.engine_argument)
        return
    if options.model is None:
        raise ValueError("--launch needs --model: a path or a Hugging Face id")
    deployment = work.deployment(options.model) if work is not None else _deployment(options)
    command = serve_command(deployment, options.port, options.launch_argument)
    say("starting: " + " ".join(command))
    log = Path(options.spool) / f"engine-{options.port}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with EngineProcess(command, options.port, log, options.ready_within_s) as engine:
        yield engine.base_url, tuple(command[3:])


def _deployment(options: argparse.Namespace) -> EngineStart:
    return EngineStart(
        engine=options.engine or "vllm",
        model=options.model,
        weights=options.weights or "bf16",
        kv_cache=options.kv_cache or "bf16",
        tensor_parallel=options.tensor_parallel or 1,
        pipeline_parallel=options.pipeline_parallel or 1,
        data_parallel=options.data_parallel or 1,
        expert_parallel=options.expert_parallel or 1,
    )


def _context(
    options: argparse.Namespace, work: RecommendedWork | None, version: str | None, arguments: tuple[str, ...]
) -> dict[str, Any]:
    """Who, what and where. What the recommendation and the launch determine need not be typed."""
    deployment = work.deployment(options.model or "") if work is not None else None
    if deployment is None and options.launch:
        deployment = _deployment(options)
    if deployment is not None:
        options.engine = options.engine or deployment.engine
        for name in ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "weights", "kv_cache"):
            if getattr(options, name) is None:
                setattr(options, name, getattr(deployment, name))
    if work is not None:
        options.device = options.device or work.line["device"]
        options.llm = options.llm or work.workload["llm"]
    if options.driver is None:
        options.driver = next((d.driver for d in probe_host().devices if d.driver), None)
    options.engine_argument = list(arguments)
    context = context_of(options, agent_id=options.agent_id, version=version)
    needed = ("device", "llm", "engine", "devices")
    missing = [f"--{name}" for name in needed if context.get(name) is None]
    if not context["precision"].get("weights"):
        missing.append("--weights")
    if missing:
        raise ValueError(f"say what is measured: {', '.join(missing)}")
    return context


def upload(options: argparse.Namespace) -> int:
    """Send the spool."""
    return _exit_code(_send(options, Spool(options.spool), options.most))


def import_files(options: argparse.Namespace) -> int:
    """Spool other tools' files with their context, then send the spool. A file that cannot be read stops nothing."""
    context = json.loads(options.context.read_text()) if options.context else {}
    given = context_of(options, agent_id=options.agent_id, version=options.engine_version)
    for name in ("layout", "precision"):
        if given.get(name) or name in context:
            given[name] = context.get(name, {}) | given.get(name, {})
    context |= {name: value for name, value in given.items() if value not in ("", {})}
    spool = Spool(options.spool)
    unread = 0
    for file in options.files:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            say(f"{file}: {error}")
            unread += 1
            continue
        notes = {"notes": context.get("notes") or file.name}
        spool.add("/v1/benchmarks/import", {"context": context | notes, "tool": options.tool, "payload": text})
    return max(_exit_code(_send(options, spool)), IMPERFECT if unread else OK)


def work(options: argparse.Namespace) -> int:
    """Take measurements until stopped."""
    found = probe_host()
    if options.device is None or options.devices is None:
        _name_devices(found, options)
        ids = [d.catalog_id for d in found.devices if d.catalog_id]
        if not ids:
            raise LaunchError(
                "no device of this host is in the catalog by its driver's name: give --device and --devices"
            )
        options.device = options.device or ids[0]
        options.devices = options.devices or ids.count(options.device)
    spool = Spool(options.spool)
    driver = next((d.driver for d in found.devices if d.driver), None)
    worker = Worker(
        client=_client(options),
        spool=spool,
        agent_id=options.agent_id,
        device=options.device,
        devices=options.devices,
        registration={
            "version": VERSION, "hostname": platform.node() or "unknown", "device": options.device,
            "devices": options.devices, "probe": found.as_json() | {"driver": driver},
        },
        log_folder=spool.folder,
        say=say,
        endpoint=options.endpoint,
        model=options.model,
        launch_arguments=tuple(options.launch_argument),
        allowed_arguments=tuple(options.allow_argument),
        port=options.port,
        lease_s=options.lease_s,
        poll_s=options.poll_s,
    )  # fmt: skip
    return run_worker(worker, options)


def _client(options: argparse.Namespace) -> ServiceClient:
    return ServiceClient(options.url, options.token, say=say)


def _send(options: argparse.Namespace, spool: Spool, most: int | None = None) -> UploadOutcome:
    client = _client(options)
    try:
        return upload_spool(spool, client, options.within_s, say, most)
    finally:
        client.close()


def _exit_code(outcome: UploadOutcome) -> int:
    if outcome.why_waiting:
        say(f"{outcome.waiting} results wait in the spool: {outcome.why_waiting}")
        return OUT_OF_REACH
    doubtful = [a for a in outcome.answers if a.get("status") not in (None, "accepted")]
    return IMPERFECT if outcome.refused or doubtful else OK


def _print(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1) + "\n")
