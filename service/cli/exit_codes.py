"""What the command's exit codes mean; shown by ``--help``."""

from enum import IntEnum


class ExitCode(IntEnum):
    ok = 0
    infeasible = 1
    bad_input = 2
    failed = 3


EXIT_CODES_HELP = """exit codes:
  0  done
  1  the answer is no: nothing within the limits serves the workload, or not every estimate could run
  2  bad usage or bad input; the message names the field
  3  the service cannot be reached or failed
"""


class CommandError(Exception):
    """Ends a command with a message on standard error."""

    def __init__(self, message: str, code: ExitCode = ExitCode.failed) -> None:
        super().__init__(message)
        self.code = code
