"""Looking at the API again and again."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_error

Seen = TypeVar("Seen")

_FAILURES_IN_A_ROW = 10


def looks(
    look: Callable[[], Seen],
    interval_seconds: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Seen]:
    """What `look` sees, for ever, with a pause after each look.

    An API that is away for a moment does not end it: that is told on stderr. Raises what `look`
    raises the tenth time in a row, and every CliError of another kind.
    """
    failures = 0
    while True:
        try:
            seen = look()
        except CliError as error:
            failures += 1
            if error.exit_code != ExitCode.UNREACHABLE or failures >= _FAILURES_IN_A_ROW:
                raise
            write_error(error.text(as_json))
        else:
            failures = 0
            yield seen
        sleep(interval_seconds)
