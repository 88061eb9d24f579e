"""The console script `carillon`: a batch preview starts at once, all else goes through typer."""

import sys

from carillon.cli.preview.batch import plain_batch, run_batch


def main() -> None:
    """Ends the process with an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character gets its escape, not an exception.
            stream.reconfigure(errors="backslashreplace")
    batch = plain_batch(sys.argv[1:])
    if batch is not None:
        sys.exit(run_batch(batch))
    # Typer and the other commands take longer to import than a batch of a thousand lines.
    from carillon.cli.tree import app

    app()


if __name__ == "__main__":
    main()
