"""`carillon hand-over`."""

from typing import Annotated, Any

import typer

from carillon.cli.options import FilterOptions, YesOption, confirm_many, tags_of
from carillon.cli.output import printable
from carillon.cli.polling import finish
from carillon.cli.session import IdempotencyKeyOption, OptionalJobArgument, SessionOptions


def hand_over(
    job: OptionalJobArgument = None,
    *,
    to: Annotated[
        str, typer.Option(metavar="TEAM", help="Who takes them; you must be its admin, too.")
    ],
    chosen: FilterOptions,
    every: Annotated[bool, typer.Option("--all", help="All jobs.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also jobs that a manifest or stack manages.")
    ] = False,
    yes: YesOption = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Until it is over; shows what has stayed.")
    ] = False,
    idempotency_key: IdempotencyKeyOption = None,
    session: SessionOptions,
) -> None:
    """Hand a job, all of a parent or tag, or all over to another team; shows the operation.

    They fire there from the instant on at which they end here. Earlier runs stay with you, as do
    jobs that cannot move: the operation says why.
    """
    query = chosen.query
    if (job is not None) + bool(query) + every != 1:
        raise typer.BadParameter("give either a JOB, or --parent or --tag, or --all")
    api = session.connect()
    body: dict[str, Any] = {"to": to}
    if job is not None:
        body["job_id"] = api.job_id(job)
    else:
        told = " and ".join(f"{name} {printable(value)}" for name, value in query.items())
        confirm_many(f"Hand all jobs{told and ' of ' + told} over to {printable(to)}?", yes)
    if chosen.parent is not None:
        body["parent"] = chosen.parent
    if chosen.tag:
        body["tags"] = tags_of(chosen.tag)
    body |= {name: True for name, is_set in (("all", every), ("force", force)) if is_set}
    operation = api.post_once("/jobs/hand-over", body, idempotency_key)
    finish(api, operation, wait, session.is_json)
