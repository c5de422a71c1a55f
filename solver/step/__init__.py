"""How long one step of a serving engine takes: rooflines per operator, collectives, overheads."""
