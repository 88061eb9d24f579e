"""`python -m tests.simulation.races`."""

import sys

from tests.simulation.races.exploring import main

if __name__ == "__main__":
    sys.exit(main())
