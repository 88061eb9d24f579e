"""Keys in order and by expiry: what is sorted when, and what is left of rows that are gone."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from carillon.stores.memory.rows import KeyOrder

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Kept:
    """Rows and their order, kept in step as a store does; counts the texts asked for."""

    def __init__(self) -> None:
        self.rows: dict[int, None] = {}
        self.asked = 0
        self.order = KeyOrder(self.rows, self._text_of)

    def put(self, key: int) -> None:
        if key not in self.rows:
            self.rows[key] = None
            self.order.add(key)

    def remove(self, key: int) -> None:
        if key in self.rows:
            del self.rows[key]
            self.order.row_gone()

    def _text_of(self, key: int) -> str:
        self.asked += 1
        return f"{key:06d}"


KEYS = st.integers(min_value=0, max_value=60)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "put", "remove", "look"]), KEYS), max_size=300)


@given(STEPS)
def test_what_is_kept_comes_in_order_and_once_whatever_came_and_went(
    steps: list[tuple[str, int]],
) -> None:
    kept = Kept()
    for step, key in steps:
        if step == "look":
            expected = sorted(other for other in kept.rows if other > key)
            assert list(kept.order.after(f"{key:06d}")) == expected
        else:
            getattr(kept, step)(key)
    assert list(kept.order.after()) == sorted(kept.rows)


def test_a_page_costs_no_sorting_anew() -> None:
    kept = Kept()
    for key in range(10_000, 0, -1):
        kept.put(key)
    assert next(kept.order.after()) == 1
    kept.asked = 0
    for key in range(0, 10_000, 100):
        assert next(kept.order.after(f"{key:06d}")) == key + 1
    assert kept.asked < 100 * 20


def test_what_is_gone_is_swept_out() -> None:
    kept = Kept()
    for key in range(10_000):
        kept.put(key)
        kept.remove(key - 10)
    kept.asked = 0
    assert len(list(kept.order.after())) == 10
    assert kept.asked < 100, "the keys of rows long gone were sorted too"
