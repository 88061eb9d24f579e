"""What is known of a zone, and that it is known anew once its rules are replaced."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from carillon.schedules import Cron, parse_schedule
from carillon.schedules.zones import offsets as zones
from carillon.schedules.zones.offsets import Transition

ALL_ZONES = files("tzdata").joinpath("zones").read_text().split()


def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def _changes(name: str) -> list[tuple[int, int, int]]:
    """The changes of a zone's offset since 1970 that its TZif file lists (RFC 9636)."""
    resource = files("tzdata.zoneinfo")
    for part in name.split("/"):
        resource = resource.joinpath(part)
    data = resource.read_bytes()
    counts = struct.unpack(">6l", data[20:44])
    is_utc, is_standard, leaps, times, types, letters = counts
    # Past the first block, in 32 bits, stands the same in 64 bits.
    data = data[44 + times * 5 + types * 6 + letters + leaps * 8 + is_standard + is_utc :]
    times, types = struct.unpack(">2l", data[32:40])
    seconds = struct.unpack(f">{times}q", data[44 : 44 + times * 8])
    kinds = data[44 + times * 8 : 44 + times * 9]
    offsets = [
        struct.unpack(">lbb", data[at : at + 6])[0]
        for at in range(44 + times * 9, 44 + times * 9 + types * 6, 6)
    ]
    found = []
    before = offsets[0]
    for second, kind in zip(seconds, kinds, strict=True):
        if offsets[kind] != before and second >= 0:
            found.append((second, before, offsets[kind]))
        before = offsets[kind]
    return found


def test_no_zone_takes_a_change_back_between_two_probes() -> None:
    assert len(ALL_ZONES) > 500
    for name in ALL_ZONES:
        seconds = [second for second, _, _ in _changes(name)]
        gaps = [later - earlier for earlier, later in pairwise(seconds)]
        assert min(gaps, default=zones._PROBE_SECONDS + 1) > zones._PROBE_SECONDS, name


@pytest.fixture
def packaged_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Zones of the tzdata package, whatever the system has."""

    def load(name: str) -> ZoneInfo:
        resource = files("tzdata.zoneinfo")
        for part in name.split("/"):
            resource = resource.joinpath(part)
        with resource.open("rb") as file:
            return ZoneInfo.from_file(file, key=name)

    monkeypatch.setattr(zones, "load_zone", load)
    zones.clear_caches()
    yield
    monkeypatch.undo()
    zones.clear_caches()


@pytest.mark.usefixtures("packaged_zones")
@pytest.mark.parametrize(
    "name",
    ["Asia/Gaza", "Africa/Casablanca", "America/Boa_Vista", "Pacific/Apia", *ALL_ZONES[::60]],
)
def test_transitions_are_those_of_the_database(name: str) -> None:
    listed = [change for change in _changes(name) if change[0] <= zones.year_start(2037)]
    found = [change for year in range(1970, 2037) for change in zones.transitions(name, year)]
    # What follows the last one that is listed, the file leaves to a rule.
    last = listed[-1][0] if listed else 0
    assert [change for change in found if change.second <= last] == listed


def test_transitions_of_a_year() -> None:
    # Europe/Riga, 2026: 03-29 03:00 EET -> 04:00 EEST, 10-25 04:00 EEST -> 03:00 EET.
    assert zones.transitions("Europe/Riga", 2026) == (
        Transition(_second("2026-03-29T01:00"), 7200, 10800),
        Transition(_second("2026-10-25T01:00"), 10800, 7200),
    )
    assert zones.transitions("UTC", 2026) == ()


@pytest.mark.parametrize(
    ("local_time", "first", "second", "reached"),
    [
        ("2026-03-29T02:59:59", "2026-03-29T00:59:59", "2026-03-29T00:59:59", None),
        ("2026-03-29T03:30", "2026-03-29T01:30", "2026-03-29T01:30", "2026-03-29T01:00"),
        ("2026-03-29T04:00", "2026-03-29T01:00", "2026-03-29T01:00", None),
        ("2026-10-25T02:59:59", "2026-10-24T23:59:59", "2026-10-24T23:59:59", None),
        ("2026-10-25T03:00", "2026-10-25T00:00", "2026-10-25T01:00", None),
        ("2026-10-25T03:59:59", "2026-10-25T00:59:59", "2026-10-25T01:59:59", None),
        ("2026-10-25T04:00", "2026-10-25T02:00", "2026-10-25T02:00", None),
    ],
)
def test_from_wall_to_instant(
    local_time: str, first: str, second: str, reached: str | None
) -> None:
    # Europe/Riga, 2026: as above.
    seconds = _second(local_time)
    assert zones.instant_of("Europe/Riga", seconds) == _second(first)
    assert zones.instant_of("Europe/Riga", seconds, second_pass=True) == _second(second)
    assert zones.first_reached("Europe/Riga", seconds) == _second(reached or first)


def test_a_live_schedule_follows_rules_that_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    daily = Cron("0 9 * * *", "Europe/Riga")
    once = parse_schedule("at 2026-06-02T09:00:00", "Europe/Riga")
    minute = int((noon + timedelta(hours=19)).timestamp()) // 60

    def answers() -> tuple[object, ...]:
        return daily.next(noon), once.next(noon), daily.seconds_of_minute(minute)

    before = datetime(2026, 6, 2, 6, tzinfo=UTC)
    assert answers() == (before, before, ())

    # As if Latvia had given up summer time: 09:00 is at 07:00 UTC then.
    given_up = ZoneInfo("Etc/GMT-2")
    monkeypatch.setattr(zones, "load_zone", lambda name: given_up)
    zones.clear_caches()
    after = datetime(2026, 6, 2, 7, tzinfo=UTC)
    assert answers() == (after, after, (0,))

    monkeypatch.undo()
    zones.clear_caches()
    assert answers() == (before, before, ())
