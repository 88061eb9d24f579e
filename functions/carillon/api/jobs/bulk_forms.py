"""What bulk requests carry and what they are answered."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from carillon.api.http.problems import Problem, problem_members
from carillon.api.jobs.bulk_service import KEY_FIELD, MOST_ERRORS, ChangedPage, Item
from carillon.api.schedules.request_models import Document

MOST_ITEMS = 1_000


class BulkBody(Document):
    """Up to 1,000 jobs; the whole body may take 1 MiB."""

    items: Annotated[
        list[Any],
        Field(
            min_length=1,
            max_length=MOST_ITEMS,
            description="Each a body of `POST /jobs` (JobBody), and beside its members "
            f"`{KEY_FIELD}`: text or null, 1 to 255 printable ASCII characters. An item that "
            "cannot be used is told so in its place in the answer.",
        ),
    ]


class BulkItemForm(BaseModel):
    """`status` and `problem` are what the item would be answered alone: 201, 200 or a refusal with
    its first 10 errors; 503 where it was not reached in time, or may have had an effect or not."""

    index: int
    status: int
    job_id: str | None
    problem: Problem | None

    @classmethod
    def of(cls, index: int, item: Item, instance: str) -> "BulkItemForm":
        if item.created is not None:
            status = 201 if item.created.is_new else 200
            return cls(index=index, status=status, job_id=item.created.job.job_id, problem=None)
        assert item.problem is not None
        members = problem_members(item.problem, instance)
        problem = Problem(**{**members, "errors": members["errors"][:MOST_ERRORS]})
        return cls(index=index, status=problem.status, job_id=None, problem=problem)


class BulkForm(BaseModel):
    """One item for each that was sent, in their order; the four numbers add up to theirs.

    With any `unavailable` send the same call again: what has a key is not created twice.
    """

    items: list[BulkItemForm]
    created: int
    existing: int
    refused: int
    unavailable: int

    @classmethod
    def of(cls, items: Sequence[Item], instance: str) -> "BulkForm":
        forms = [BulkItemForm.of(index, item, instance) for index, item in enumerate(items)]
        return cls(
            items=forms,
            created=_count(forms, [201]),
            existing=_count(forms, [200]),
            refused=_count(forms, range(400, 500)),
            unavailable=_count(forms, range(500, 600)),
        )


class ChangedForm(BaseModel):
    """`changed` counts the jobs that this call changed. Repeat it with the cursor until that is
    null; jobs that are created meanwhile may be left out."""

    changed: int
    next_cursor: str | None

    @classmethod
    def of(cls, page: ChangedPage) -> "ChangedForm":
        return cls(changed=page.changed, next_cursor=page.next_cursor)


def _count(forms: Iterable[BulkItemForm], statuses: Sequence[int]) -> int:
    return sum(1 for form in forms if form.status in statuses)
