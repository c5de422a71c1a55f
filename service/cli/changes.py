"""What lists can be changed with, on the command line."""

CHANGES: dict[str, tuple[str, ...]] = {"llms": ("add",), "offers": ("add", "withdraw")}
"""What may stand where an id does, by list."""
