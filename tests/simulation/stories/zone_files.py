"""Time zones made by hand, to put in the place of real ones: a database of another version."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from zoneinfo import ZoneInfo

import pytest

from carillon.schedules.zones import offsets as zones


def zone_of(before_hours: float, *changes: tuple[datetime, float]) -> ZoneInfo:
    """A zone with one offset (hours east), and others from these instants on.

    Written in the format of RFC 8536, version 2: an empty first block, 64-bit transition times,
    and a footer that keeps the last offset for ever.
    """
    hours = [before_hours, *(after for _, after in changes)]
    times = [int(instant.timestamp()) for instant, _ in changes]
    types = b"".join(struct.pack(">lbb", int(h * 3600), 0, 0) for h in hours)
    data = b"".join(struct.pack(">q", second) for second in times)
    data += bytes(range(1, len(times) + 1)) + types + b"XXX\0"
    minutes = -int(hours[-1] * 60)
    sign = "-" if minutes < 0 else ""
    footer = f"\n<XXX>{sign}{abs(minutes) // 60}:{abs(minutes) % 60:02d}\n".encode()
    empty = _header(0, 1, 1) + struct.pack(">lbb", 0, 0, 0) + b"\0"
    return ZoneInfo.from_file(BytesIO(empty + _header(len(times), len(hours), 4) + data + footer))


def _header(times: int, types: int, characters: int) -> bytes:
    return b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, times, types, characters)


@contextmanager
def zones_put_back() -> Iterator[None]:
    """Forget at the end what was worked out by zones made by hand."""
    try:
        yield
    finally:
        zones.clear_caches()


def put(monkeypatch: pytest.MonkeyPatch, name: str, zone: ZoneInfo) -> None:
    """Let `name` be this zone from now on, as a process with another database would have it."""
    load_zone = zones.load_zone
    monkeypatch.setattr(
        zones, "load_zone", lambda asked: zone if asked == name else load_zone(asked)
    )
    zones.clear_caches()
