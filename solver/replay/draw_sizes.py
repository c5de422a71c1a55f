"""How many requests a look and a draw of a steady open load have, and of which seeds: see ``long_run``."""

DRAWS = 4
DRAW_REQUESTS = 6_000
"""Per lane; more where so many pass through too seldom (``long_run.draw_requests``)."""
DRAW_SEEDS = tuple(range(1, 1 + DRAWS))
FURTHER_SEEDS = tuple(range(2 + DRAWS, 14 + DRAWS))
"""Of the draws that are added where the first do not say enough."""
QUICK_REQUESTS = 1_000
"""Of a first look, which shows too little crowding but is soon over."""
QUICK_SEED = 1 + DRAWS
