"""Plans without a solver: where it starts, what it falls back on."""
