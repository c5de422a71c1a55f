"""What is wrong with an uploaded file."""


class ReadingError(Exception):
    """The file cannot be read as a benchmark result. ``pointer`` is a JSON pointer into the payload."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer
        self.message = message
