"""Retry policies: which errors are tried again, and when; time limits."""

import pytest

from carillon.domain.policies import Backoff, BackoffType, RetryPolicy
from carillon.domain.run import FAIL_KIND, RETRY_KIND, RunError
from carillon.schedules import parse_schedule
from tests.unit.domain.samples import job


class TestWhatIsRetried:
    def test_without_a_list_all_but_what_no_retry_can_help(self) -> None:
        policy = RetryPolicy()
        assert policy.retries(RunError("timeout", "m"))
        assert not policy.retries(RunError("http_404", "m", permanent=True))

    @pytest.mark.parametrize(
        ("kind", "retried"),
        [
            ("http_503", True),
            ("http_429", True),
            ("http_430", False),
            ("http_50", False),
            ("http_5xxx", False),
            ("ConnectionError", True),
            ("timeout", False),
        ],
    )
    def test_with_a_list_these_kinds_only(self, kind: str, retried: bool) -> None:
        policy = RetryPolicy(retry_on=("http_5xx", "http_429", "ConnectionError"))
        assert policy.retries(RunError(kind, "m")) is retried

    def test_a_list_may_name_what_is_refused_for_good_otherwise(self) -> None:
        policy = RetryPolicy(retry_on=("http_404",))
        assert policy.retries(RunError("http_404", "m", permanent=True))

    def test_a_task_that_fails_for_good_is_never_retried(self) -> None:
        fails = RunError(FAIL_KIND, "no such customer", permanent=True)
        assert not RetryPolicy(retry_on=(FAIL_KIND,)).retries(fails)
        assert not RetryPolicy().retries(fails)

    def test_a_task_that_asks_for_a_retry_gets_one_whatever_the_list(self) -> None:
        assert RetryPolicy(retry_on=("timeout",)).retries(RunError(RETRY_KIND, "later"))


class TestBackoff:
    def test_fixed_is_always_the_base(self) -> None:
        backoff = Backoff(base_seconds=90, factor=3, cap_seconds=10, type=BackoffType.FIXED)
        delays = {backoff.delay_seconds(n, fraction) for n in (1, 5, 99) for fraction in (0, 0.9)}
        assert delays == {90}

    def test_exponential_lies_under_a_growing_ceiling_and_over_zero(self) -> None:
        backoff = Backoff(base_seconds=4, factor=2, cap_seconds=20)
        assert [backoff.delay_seconds(n, 0.0) for n in (1, 2, 3, 4, 500)] == [4, 8, 16, 20, 20]
        assert [backoff.delay_seconds(n, 0.5) for n in (1, 2, 3)] == [2, 4, 8]
        assert backoff.delay_seconds(1, 0.999) == 1


class TestTimeLimits:
    """`longest` is what a process of the deployment has to give."""

    @pytest.mark.parametrize(
        ("schedule", "stated", "longest", "limit"),
        [
            ("every 1m", None, 55, 30),
            ("every 7s", None, 55, 3),
            ("every 1s", None, 55, 1),
            ("every 2h", None, 55, 55),
            ("* * * * *", None, 55, 10),
            ("every 1m", 45, 55, 45),
            ("* * * * *", 90, 55, 55),
        ],
    )
    def test_half_the_interval_unless_the_job_states_one(
        self, schedule: str, stated: int | None, longest: int, limit: int
    ) -> None:
        limited = job(schedule=parse_schedule(schedule), timeout_seconds=stated)
        assert limited.time_limit_seconds(longest) == limit
