"""Why this plan, why no cheaper one, why none at all: every figure is a request solved again to the same rules."""
