"""`make models`: explore all variants, the big ones too, and see each bug break its promise.

`--traces` shows the traces of bugs. The exit code is 1 where a case is not as it should be.
"""

import sys
from time import monotonic, process_time

from tests.models.cases import EVERYTHING
from tests.models.kit import explored_of, wrong_with


def main(arguments: list[str]) -> int:
    began, states, wrong = monotonic(), 0, 0
    for title, cases in EVERYTHING.items():
        for case in cases:
            explored = explored_of(case)
            states += explored.states
            reason = wrong_with(case, explored)
            wrong += reason is not None
            found = reason or ", ".join(explored.violations) or "holds"
            _say(f"{title:7} {case.name:45} {explored.states:>9,}  {found}")
            for trace in explored.violations.values() if "--traces" in arguments else ():
                _say("\n".join(f"    {at:2}. {words}" for at, words in enumerate(trace, 1)))
    seconds = f"{monotonic() - began:.0f} s ({process_time():.0f} s CPU)"
    _say(f"{states:,} states in {seconds}; {wrong} cases are wrong")
    return 1 if wrong else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
