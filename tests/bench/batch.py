"""`make bench-batch`: `carillon preview --batch` beside a bare loop over cronsim.

Two programs answer the same 5,000 different lines, each as a whole process from its start to its
end, in turns; the bar is that ours takes no more than twice as long. Prints the best time of each.
"""

import json
import platform
import random
import subprocess
import sys
import time
from datetime import UTC, datetime

LINES = 5_000
ROUNDS = 5
BAR = 2.0
COUNTS = (1, 5, 20)
_SEED = 20_261_120
_ZONES = ("UTC", "Europe/Riga", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo")
_CARILLON = [sys.executable, "-m", "carillon.cli.main", "preview", "--batch"]
_BARE_LOOP = """
import json, sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo
from cronsim import CronSim

for line in sys.stdin:
    form = json.loads(line)
    after = datetime.fromisoformat(form["after"]).astimezone(ZoneInfo(form["timezone"]))
    found = CronSim(form["schedule"], after)
    fires = [next(found).astimezone(UTC).isoformat()[:-6] + "Z" for _ in range(form["count"])]
    sys.stdout.write(json.dumps({"fire_at": fires}) + "\\n")
"""


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}")
    print(f"{LINES:,} different lines, whole processes, the best of {ROUNDS} rounds in turns")
    print(f"{'occurrences':>11}  {'cronsim':>9}  {'carillon':>9}  {'ratio':>6}  same answers")
    for count in COUNTS:
        _compare(count)


def _compare(count: int) -> None:
    """One row: every line asks for `count` occurrences."""
    lines = _lines(count)
    bare, ours = float("inf"), float("inf")
    expected = answers = b""
    for _ in range(ROUNDS):
        seconds, expected = _timed([sys.executable, "-c", _BARE_LOOP], lines)
        bare = min(bare, seconds)
        seconds, answers = _timed(_CARILLON, lines)
        ours = min(ours, seconds)
    pairs = zip(expected.splitlines(), answers.splitlines(), strict=True)
    same = sum(one == other for one, other in pairs)
    ratio = ours / bare
    print(
        f"{count:>11}  {bare:>7.3f} s  {ours:>7.3f} s  {ratio:>6.2f}  {same:,} of {LINES:,}"
        f"  (bar {BAR:.1f}: {'kept' if ratio <= BAR else 'missed'})"
    )


def _timed(command: list[str], lines: bytes) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began, done.stdout


def _lines(count: int) -> bytes:
    """Lines that all have another expression, after the same instant."""
    chance = random.Random(_SEED)
    expressions: set[str] = set()
    while len(expressions) < LINES:
        expressions.add(_expression(chance))
    return b"".join(
        json.dumps(
            {
                "schedule": expression,
                "timezone": chance.choice(_ZONES),
                "after": "2026-02-27T22:17:00Z",
                "count": count,
            }
        ).encode()
        + b"\n"
        for expression in sorted(expressions)
    )


def _expression(chance: random.Random) -> str:
    """Five fields as users write them, from minutely to yearly."""
    day, weekday = chance.choice(
        (("*", "*"), ("*", "MON-FRI"), ("*", "5"), ("1,15", "*"), ("L", "*"))
    )
    fields = (
        chance.choice((_some(chance, 0, 59), f"*/{chance.randint(1, 30)}", "*")),
        chance.choice(
            (_some(chance, 0, 23), f"{chance.randint(0, 11)}-{chance.randint(12, 23)}", "*")
        ),
        chance.choice((day, str(chance.randint(1, 28)))),
        chance.choice(("*", "*", _some(chance, 1, 12))),
        weekday,
    )
    return " ".join(fields)


def _some(chance: random.Random, lowest: int, highest: int) -> str:
    values = chance.sample(range(lowest, highest + 1), chance.randint(1, 3))
    return ",".join(map(str, sorted(values)))


if __name__ == "__main__":
    main()
