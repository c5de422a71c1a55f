"""Step tables of the deployments met last, for many loads on few of them."""

from collections import OrderedDict
from collections.abc import Callable

from solver.deployment.configuration import Configuration
from solver.step.tables import StepTables, tables_bytes

TablesOf = Callable[[Configuration], StepTables]
"""Makes step tables, or has kept them."""
MOST_BYTES = 4_000_000
"""Some thirty tables of 8,192 tokens; the newest is kept whatever its size."""


class KeptTables:
    """By all that tables depend on, so that they are what ``Configuration.tables`` makes. Of one thread."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[object, ...], StepTables] = OrderedDict()
        self._bytes = 0

    def __call__(self, configuration: Configuration) -> StepTables:
        """Raises what ``Configuration.tables`` raises."""
        key = configuration.tables_key()
        if key is None:
            return configuration.tables()
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        made = self._kept[key] = configuration.tables()
        self._bytes += tables_bytes(made)
        while len(self._kept) > 1 and self._bytes > self._most_bytes:
            self._bytes -= tables_bytes(self._kept.popitem(last=False)[1])
        return made
