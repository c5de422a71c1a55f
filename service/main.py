"""The application: what is shared by all requests, middleware, routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from service import VERSION, health
from service.access import FAILURES_BURST, FAILURES_PER_S, Doors, RecentCallers
from service.api_prices import routes as api_prices
from service.benchmarks import routes as benchmarks
from service.benchmarks.predict import planner_loop
from service.benchmarks.preparing import loop_of
from service.benchmarks.storing import store_admitted
from service.benchmarks.training_runs import routes as training_runs
from service.body_limit import BodyLimit
from service.clock import Clock, system_clock
from service.corrections import routes as corrections
from service.corrections.learn import RefreshWorker
from service.database import Database
from service.deployments import routes as deployments
from service.devices import routes as devices
from service.estimates import routes as estimates
from service.fleets import routes as fleets
from service.group_commit import GroupCommit
from service.host_guard import HostGuard
from service.jobs import routes as jobs
from service.jobs.worker import JobWorker
from service.llms import routes as llms
from service.measurements import routes as measurements
from service.metrics import Metrics
from service.nodes import routes as nodes
from service.offers import routes as offers
from service.openapi_document import DescribedApi
from service.page.routes import install_page
from service.prices_import import routes as prices_import
from service.problem_handlers import install_problem_handlers
from service.providers import routes as providers
from service.rate_limit import RateLimit
from service.readiness import log_unreadiness
from service.recommendations import routes as recommendations
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.solved_requests import SolvedRequestCache
from service.recommendations.spaces import SpaceCache
from service.request_log import RequestLog
from service.sandboxed_reading import ReadingApart
from service.settings import Settings, read_settings
from service.solver_pool import SolverPool
from service.tco import routes as tco
from service.traces import routes as traces
from service.training import routes as training
from service.warm import start_warming
from service.why import routes as why
from service.wire.problems import ProblemOut

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": text, "content": {"application/problem+json": {}}}
    for status, text in (
        (400, "The body cannot be read"),
        (401, "A valid token is needed"),
        (403, "The role may not do this"),
        (404, "No such thing; close names are offered"),
        (405, "The `Allow` header lists the methods"),
        (408, "The request came too slowly"),
        (409, "Contradicts what is stored"),
        (413, "The body is too large"),
        (415, "The body is not said to be JSON"),
        (422, "Fields are invalid; each is named"),
        (429, "Rate limit reached"),
        (431, "The headers are too large"),
        (500, "A defect; `request_id` finds it in the log"),
        (507, "The disk is full"),
        (503, "Not available now"),
    )
}


def create_app(settings: Settings | None = None, clock: Clock = system_clock, *, run_jobs: bool = True) -> FastAPI:
    """A service with its own database connections, solver threads, caches and metrics.

    run_jobs: off for an application that ends after one request: nothing is loaded ahead of it either.
    """
    chosen = settings or read_settings()
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.database = Database(
            chosen.database_url, pool_size=chosen.database_pool_size, lock_timeout_s=chosen.database_lock_timeout_s
        )
        app.state.solver_pool = SolverPool(
            workers=chosen.solver_workers, queue=chosen.solver_queue, grace_s=chosen.shutdown_grace_s, metrics=metrics
        )
        app.state.uploads = GroupCommit(
            app.state.database, lambda session, batch: store_admitted(session, batch, loop_of(app).changed), "uploads"
        )
        app.state.uploads.start()
        app.state.corrections = RefreshWorker(app.state.database, clock)
        app.state.corrections.start()
        slots = chosen.jobs_in_service
        if slots is None:
            slots = 1 if app.state.database.is_sqlite else 0
        app.state.job_worker = JobWorker(app.state.database, chosen, clock, slots if run_jobs else 0)
        app.state.job_worker.start()
        if run_jobs:
            log_unreadiness(app.state.database)
            start_warming()
        try:
            yield
        finally:
            app.state.job_worker.close()
            app.state.corrections.close()
            app.state.uploads.close()
            app.state.solver_pool.close()
            app.state.database.close()

    app = DescribedApi(
        title="Clusterwright",
        version=VERSION,
        summary="Which accelerators, from whom, how many, split how, serve a workload at least cost, with a proof.",
        lifespan=lifespan,
        redirect_slashes=False,  # the address would be made of the Host header
        responses=dict(PROBLEMS),
        docs_url=None,  # FastAPI's own fetch scripts from elsewhere: service.page serves /docs
        redoc_url=None,
    )
    app.state.settings = chosen
    app.state.clock = clock
    app.state.metrics = metrics
    app.state.doors = Doors(
        RateLimit(chosen.rate_limit_requests_per_s, chosen.rate_limit_burst), RateLimit(FAILURES_PER_S, FAILURES_BURST)
    )
    app.state.recent_callers = RecentCallers()
    app.state.apart = ReadingApart(
        time_limit_s=chosen.import_time_limit_s, memory_limit_bytes=chosen.import_memory_limit_bytes
    )
    app.state.snapshots = SnapshotCache()
    app.state.benchmark_loop = planner_loop()
    app.state.spaces = SpaceCache()
    app.state.solved_requests = SolvedRequestCache()
    install_problem_handlers(app)
    for router in (
        training_runs.router,  # before benchmarks, one of whose routes would take its address for an id
        benchmarks.router,  # first: it gets by far the most requests, and routers are tried in this order
        devices.router,
        nodes.router,
        llms.router,
        offers.router,
        providers.router,
        api_prices.router,
        estimates.router,
        training.router,
        recommendations.router,
        deployments.router,
        fleets.router,
        jobs.router,
        why.router,
        corrections.router,
        measurements.router,
        tco.router,
        traces.router,
        prices_import.router,
        health.router,
    ):
        app.include_router(router)
    install_page(app)
    app.add_middleware(BodyLimit, settings=chosen)
    app.add_middleware(HostGuard)
    app.add_middleware(RequestLog, metrics=metrics)
    return app
