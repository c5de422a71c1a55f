"""Loading what planning needs before anybody asks: the solver's libraries and the compiled simulation.

It takes seconds on a busy machine, and the first request would pay for it out of its own time limit. The service is ready
meanwhile; a request that comes in earlier waits for the rest of it.
"""

import importlib
import logging
import threading

from service.process_memory import forget_compiler

log = logging.getLogger(__name__)

_loading = threading.Lock()
_loaded = threading.Event()


def start_warming() -> threading.Thread:
    """In a thread of its own, which does not keep the process alive."""
    thread = threading.Thread(target=_warm, name="warm", daemon=True)
    thread.start()
    return thread


def load_planning() -> None:
    """Once for the process, compiled too where nobody did at installation; who comes meanwhile waits."""
    with _loading:
        if _loaded.is_set():
            return
        importlib.import_module("solver.recommend.recommend")
        from solver.engine.compile import compile_simulation

        compile_simulation()
        forget_compiler()
        _loaded.set()


def _warm() -> None:
    try:
        load_planning()
    except Exception:  # whoever plans next meets the same, and is told
        log.exception("planning could not be loaded ahead")
