"""Deviations: what has gone wrong with an owner's jobs, by the activity feed."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from carillon.domain.activity.results import Result
from carillon.domain.notifying.notice import MOST_ERRORS
from carillon.domain.notifying.notification import Told
from carillon.domain.notifying.window import Noted
from carillon.domain.run import DEAD_LETTER, RunKey, RunKind, RunStatus
from carillon.errors import UnreadableRowError
from carillon.services.activity import Activity, ActivityFilter
from carillon.services.history import History

Chooses = Callable[[str, Mapping[str, str]], bool]
"""True for the name and the tags of a job that matters."""
_FAILED = ActivityFilter(frozenset({RunStatus.MISSED.value, *(each.value for each in DEAD_LETTER)}))
_PAGE = 500
_MOST = 5_000
MOST_PAGES = 25
"""Pages of the feed that are read."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Runs that failed for good or were missed; without `is_complete` there were more."""

    events: tuple[Noted, ...]
    is_complete: bool


class Deviations:
    """Raises StoreUnavailableError."""

    def __init__(self, feed: Activity, history: History) -> None:
        self._feed = feed
        self._history = history

    def between(
        self,
        owner: str,
        from_at: datetime,
        until_at: datetime,
        chooses: Chooses,
        has_time: Callable[[], bool],
    ) -> Gone:
        """Those recorded in [from_at, until_at], of jobs that `chooses` names, as long as time is
        left. The rows of a few runs are read for the words of the most frequent errors."""
        found: dict[str, Noted] = {}
        examples: dict[str, RunKey] = {}
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = self._feed.read(owner, _FAILED, from_at, until_at, _PAGE, cursor)
            for result in page.items:
                is_own = result.key.kind is RunKind.NOTICE
                if not is_own and chooses(result.job_name, dict(result.tags)):
                    found[result.key.run_id] = _noted(result)
                    examples.setdefault(result.error_kind or "", result.key)
            cursor = page.next_cursor
            if cursor is None or len(found) >= _MOST or not has_time():
                break
        return Gone(self._with_words(found, examples), cursor is None)

    def _with_words(
        self, found: Mapping[str, Noted], examples: Mapping[str, RunKey]
    ) -> tuple[Noted, ...]:
        counts = Counter(each.error_kind for each in found.values() if each.error_kind)
        words = {kind: self._words(examples[kind]) for kind, _ in counts.most_common(MOST_ERRORS)}
        return tuple(
            replace(each, error_message=words.get(each.error_kind, "")) for each in found.values()
        )

    def _words(self, key: RunKey) -> str:
        """Those of the run's error; none where its row is gone, or cannot be read."""
        run = None
        with suppress(UnreadableRowError):
            run = self._history.get(key)
        return "" if run is None or run.error is None else run.error.message


def _noted(result: Result) -> Noted:
    return Noted(
        type=Told.RUN_MISSED if result.status is RunStatus.MISSED else Told.RUN_DEAD,
        at=result.at,
        job_id=result.key.job_id,
        job_name=result.job_name or result.key.job_id,
        run_id=result.key.run_id,
        error_kind=result.error_kind or "",
    )
