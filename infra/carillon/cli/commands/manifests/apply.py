"""`carillon diff` and `carillon apply`."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from carillon.cli.client import Json
from carillon.cli.commands.manifests.applying import Applier, Plan, refuse_nameless
from carillon.cli.commands.manifests.export import exported
from carillon.cli.commands.manifests.files import FilesArgument, read_manifest, refusal
from carillon.cli.commands.manifests.rehearsal import compared, rehearsed
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import span_of
from carillon.cli.options import YesOption, confirm_many
from carillon.cli.output import printable, write_error, write_json, write_line
from carillon.cli.session import SessionOptions
from carillon.errors import InvalidFieldError
from carillon.manifest.manifest import Manifest, ManifestRefusedError

PruneOption = Annotated[
    bool, typer.Option("--prune", help="Delete the manifest's jobs that the files do not have.")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Overwrite what others have changed since the last apply.")
]
AdoptOption = Annotated[
    bool, typer.Option("--adopt", help="Take over jobs that this manifest does not manage.")
]
ExpectOption = Annotated[
    str | None,
    typer.Option(metavar="DIGEST", help="Only the plan of this digest, which `diff` shows."),
]
_MANY_DELETED = 20
_LARGE_SHARE = 0.1
_MARKS = {
    "create": "+",
    "change": "~",
    "revive": "^",
    "rename": "=",
    "delete": "-",
    "drift": "!",
    "refused": "!",
    "unavailable": "?",
}


def diff(
    files: FilesArgument,
    *,
    prune: PruneOption = False,
    force: ForceOption = False,
    adopt: AdoptOption = False,
    rehearse: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Simulate so long, as 24h, before and after the change."),
    ] = None,
    session: SessionOptions,
) -> None:
    """Show what `apply` would do; nothing is written. Exit code 8 if it would do something."""
    manifest, applier = _applier(files, session, force=force, adopt=adopt)
    with progress_bar() as applier.show:
        plan = applier.plan(prune=prune)
        told = None
        if rehearse is not None and not plan.is_blocked:
            told = _rehearsed(applier, rehearse, prune=prune)
    _write(manifest, plan, session.is_json, is_done=False, rehearsal=told)
    raise typer.Exit(_exit_code(plan))


def apply(
    files: FilesArgument,
    *,
    prune: PruneOption = False,
    yes: YesOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="As `diff`.")] = False,
    force: ForceOption = False,
    adopt: AdoptOption = False,
    expect: ExpectOption = None,
    session: SessionOptions,
) -> None:
    """Make the jobs and calendars of a deployment what the manifest says.

    Everything is compared first; where one item cannot be, nothing is written. Paused jobs stay
    paused. It can be repeated.
    """
    manifest, applier = _applier(files, session, force=force, adopt=adopt)
    with progress_bar() as applier.show:
        plan = applier.plan(prune=prune)
    if dry_run or plan.is_blocked:
        _write(manifest, plan, session.is_json, is_done=False)
        raise typer.Exit(_exit_code(plan))
    if expect not in (None, plan.digest):
        detail = f"its digest is {plan.digest}, not {expect}: review it again"
        raise CliError.local(ExitCode.CONFLICT, "The plan has changed", detail)
    _confirm_deletions(manifest, plan, yes or expect is not None)
    with progress_bar() as applier.show:
        done, is_complete = applier.carry_out()
    _write(manifest, done, session.is_json, is_done=True)
    if not is_complete:
        write_error("Not all of it was carried out: apply again")
        raise typer.Exit(done.exit_code or ExitCode.UNREACHABLE)


def _applier(
    files: list[str], session: SessionOptions, *, force: bool, adopt: bool
) -> tuple[Manifest, Applier]:
    manifest = read_manifest(files)
    refuse_nameless(manifest)
    return manifest, Applier(session.connect(), manifest, {"force": force, "adopt": adopt})


def _rehearsed(applier: Applier, span: str, *, prune: bool) -> str:
    """The line about a span that begins with the next minute."""
    try:
        begin, until = span_of(None, span, "rehearse")
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    applier.show(f"simulating {span}, before and after")
    api, manifest = applier.api, applier.manifest
    stored = list(api.items("/jobs", None, {"managed_by": f"manifest/{manifest.name}"}))
    before = Manifest.of(exported(api, stored, manifest.name))
    for job in stored:  # whatever it began with
        state = "paused" if job["state"] == "paused" else "active"
        before.jobs[job["name"]]["initial_state"] = state
    try:
        return rehearsed(*compared(before, manifest, prune=prune), begin, until)
    except ManifestRefusedError as error:  # of what only a simulation reads
        raise refusal(manifest, error.errors) from error


def _exit_code(plan: Plan) -> ExitCode:
    if plan.is_blocked:
        return plan.exit_code
    return ExitCode.OK if plan.is_empty else ExitCode.DIFFERENT


def _confirm_deletions(manifest: Manifest, plan: Plan, yes: bool) -> None:
    """Ask before many jobs, or a large share of them, are deleted: unless the plan was reviewed,
    as its digest says."""
    deleted = plan.counts["delete"]
    if deleted > min(_MANY_DELETED, _LARGE_SHARE * (len(manifest.jobs) + deleted)):
        confirm_many(f"Delete {deleted:,} jobs of {manifest.name} for good?", yes)


def _write(
    manifest: Manifest,
    plan: Plan,
    as_json: bool,
    *,
    is_done: bool,
    rehearsal: str | None = None,
) -> None:
    if as_json:
        told = {"items": plan.items, "counts": plan.counts, "digest": plan.digest}
        write_json(told | ({} if rehearsal is None else {"rehearsal": rehearsal}))
        return
    shown = [item for item in plan.items if item["action"] != "none"]
    width = max((len(printable(item["name"])) for item in shown), default=0)
    for item in shown:
        action, name = item["action"], printable(item["name"])
        lines = list(_told(manifest, item)) or [""]
        write_line(f"{_MARKS[action]} {action:<11} {name:<{width}}  {lines[0]}".rstrip())
        for line in lines[1:]:
            write_line(f"{'':<15}{'':<{width}} {line}")
    if rehearsal is not None:
        write_line(rehearsal)
    counts = [f"{count:,} {_verb(action, is_done)}" for action, count in plan.counts.items()]
    digest = "" if is_done or plan.is_empty else f"; digest {plan.digest}"
    write_line(f"{', '.join(counts) or 'nothing to do'}{digest}")


_DONE = {
    "create": "created",
    "change": "changed",
    "revive": "revived",
    "rename": "renamed",
    "delete": "deleted",
}


def _verb(action: str, is_done: bool) -> str:
    if action == "none":
        return "unchanged"
    return _DONE.get(action, action) if is_done else f"to {action}" if action in _DONE else action


def _told(manifest: Manifest, item: Json) -> Iterator[str]:
    """The lines about an item: its problem, its changes, and when it fires."""
    problem = item.get("problem")
    if problem:
        path = (f"{item['kind']}s", str(item["name"]))
        errors = problem.get("errors") or ()
        for error in errors:
            field, message = str(error["field"]), str(error["message"])
            yield manifest.located((*path, field), f"{printable(field)}: {printable(message)}")
        if not errors:
            yield manifest.located(path, printable(problem.get("detail")))
    for change in item["changes"]:
        before, after = _short(change["before"]), _short(change["after"])
        yield f"{printable(change['path'])}: {before} -> {after}"
    if item.get("sentence"):
        following = item["next_fire_at"]
        yield printable(item["sentence"]) + (f", next {following}" if following else "")
    elif item["kind"] == "job" and item["action"] == "change":
        yield "fires as before"
    for warning in item["warnings"]:
        yield f"Warning: {printable(warning['message'])}"


def _short(value: Any) -> str:
    text = printable(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
