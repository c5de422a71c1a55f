"""What is wrong with a trace, and in which line."""


class TraceError(Exception):
    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
