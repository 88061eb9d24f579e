"""The segments that are in use."""

from carillon.stores.ports import WheelStore


def segments_in_use(wheel: WheelStore, configured: int) -> int:
    """The number of segments to serve: never fewer than have ever been used.

    Jobs keep their segment until they are moved, and what was sent from there may come back later:
    so a lowered setting is not followed. The control items of the segments beyond it count, also
    those that cannot be read.
    """
    count = configured
    while wheel.examine_control(count) is not None:
        count += 1
    return count
