"""How many random cases a test of properties goes through: a few at every run, all of them in continuous integration.

Random moments to be killed at are such cases too; each costs two starts of the service.
"""

import os

ALL_SEEDS = "ALL_SEEDS"
"""Environment variable that asks for all of them; ``make test-all`` sets it."""
FEW = 50


def cases(every: int, few: int = FEW) -> int:
    """``every`` where all cases are asked for, otherwise at most ``few``."""
    return every if os.environ.get(ALL_SEEDS) else min(every, few)
