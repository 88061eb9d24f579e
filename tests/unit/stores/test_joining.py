"""Requests that several threads share."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from time import monotonic, sleep

from carillon.stores.dynamo.joining import Joined

AT_MOST = 4


class Requests:
    """Hold back the first one until so many others wait; `fails` raises in the request of an
    item."""

    def __init__(self, fails: Callable[[Sequence[int]], bool] = lambda items: False) -> None:
        self.made: list[list[int]] = []
        self.begun = Event()
        self.may_end = Event()
        self._fails = fails
        self._lock = Lock()
        self.most_at_once = self._at_once = 0

    def __call__(self, items: Sequence[int]) -> list[int]:
        with self._lock:
            self.made.append(list(items))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self.begun.set()
        assert self.may_end.wait(10)
        with self._lock:
            self._at_once -= 1
        if self._fails(items):
            raise OSError(f"no answer for {items[0]}")
        return [10 * each for each in items]


def at_once(requests: Requests, count: int) -> list[int | OSError]:
    """Let a thread be in its request when the others come; what each got."""
    joined = Joined(lambda items: min(len(items), AT_MOST), requests)

    def send(item: int) -> int | OSError:
        try:
            return joined.send(item)
        except OSError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        first = pool.submit(send, 0)
        assert requests.begun.wait(10)
        others = [pool.submit(send, number) for number in range(1, count)]
        until = monotonic() + 10
        while len(joined._waiting) < count - 1 and monotonic() < until:
            sleep(0.001)
        requests.may_end.set()
        return [each.result(10) for each in (first, *others)]


def test_those_that_come_meanwhile_share_the_next_request() -> None:
    requests = Requests()
    assert at_once(requests, 8) == [10 * number for number in range(8)]
    assert [len(made) for made in requests.made] == [1, 4, 3]
    assert requests.most_at_once == 1


def test_one_alone_makes_its_own_at_once() -> None:
    requests = Requests()
    requests.may_end.set()
    joined = Joined(len, requests)
    assert [joined.send(number) for number in (1, 2, 3)] == [10, 20, 30]
    assert requests.made == [[1], [2], [3]]


def test_only_the_maker_of_a_request_gets_what_it_raises() -> None:
    requests = Requests(lambda items: requests.made[1:2] == [items])
    got = at_once(requests, 6)
    (failed,) = [number for number, each in enumerate(got) if isinstance(each, OSError)]
    assert failed == requests.made[1][0]
    answered = [each for number, each in enumerate(got) if number != failed]
    assert answered == [10 * number for number in range(6) if number != failed]
