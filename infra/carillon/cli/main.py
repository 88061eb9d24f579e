"""The console script `carillon`: a batch preview starts at once, all else goes through typer."""

import os
import sys

from carillon.cli.preview.batch import plain_batch, run_batch


def main() -> None:
    """Ends the process with an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character gets its escape, not an exception.
            stream.reconfigure(errors="backslashreplace")
    if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty():
        # What is written to a file, as a manifest, is UTF-8 as it is read, whatever the locale is.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    batch = plain_batch(sys.argv[1:])
    if batch is not None:
        sys.exit(run_batch(batch))
    if "_CARILLON_COMPLETE" in os.environ:
        # Typer does so itself only beside options of its own, which `completion` stands for.
        from typer._completion_classes import completion_init

        completion_init()
    # Typer and the other commands take longer to import than a batch of a thousand lines.
    from carillon.cli.tree import app

    app(prog_name="carillon")


if __name__ == "__main__":
    main()
