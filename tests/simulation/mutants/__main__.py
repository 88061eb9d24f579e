"""`python -m tests.simulation.mutants`."""

import sys

from tests.simulation.mutants.hunting import main

if __name__ == "__main__":
    sys.exit(main())
