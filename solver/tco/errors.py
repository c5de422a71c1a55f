"""What the cost model refuses, by field."""

from solver.errors import InvalidInputError


class CostInputError(InvalidInputError):
    """An argument outside its domain. ``field`` names it as the caller does, ``alternative`` whose it is."""

    def __init__(self, field: str, message: str, alternative: str | None = None) -> None:
        owner = f"{alternative}: " if alternative else ""
        super().__init__(f"{owner}{field}: {message}")
        self.field = field
        self.alternative = alternative
