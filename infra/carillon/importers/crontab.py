"""A crontab, as Debian's cron and cronie read it; the commands themselves stay behind."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from carillon.importers.entries import Entry, Json, Note
from carillon.importers.names import LONGEST_NAME
from carillon.importers.stubs import Stubs

_ASSIGNMENT = re.compile(r"""\s*(?:"(\w+)"|'(\w+)'|(\w+))\s*=\s*(.*?)\s*""")
_MACRO = re.compile(r"(@\S+)\s+(.*)")
_FIVE = re.compile(r"((?:\S+\s+){4}\S+)\s+(.*)")
_STDIN = re.compile(r"(?<!\\)%")
_CRON_FIELD = re.compile(r"[\d*][\w*/,~-]*", re.ASCII)
_NO_CATCH_UP: Json = {"retry": {"max_attempts": 1}, "catch_up": "skip"}
"""Cron starts each command once, and forgets what it missed."""


@dataclass(slots=True)
class _State:
    """The lines before, as far as they matter to those that follow."""

    zone: str
    default_zone: str
    comment: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CrontabOptions:
    """`timezone` holds until a line CRON_TZ; `has_user`: a sixth column names the user, as in
    /etc/crontab."""

    timezone: str = "UTC"
    has_user: bool = False
    stubs: Stubs = field(default_factory=Stubs)


def crontab_entries(text: str, options: CrontabOptions) -> Iterator[Entry]:
    """An entry for each line that is neither a comment nor empty."""
    state = _State(options.timezone, options.timezone)
    for number, line in enumerate(text.splitlines(), start=1):
        place, stripped = f"line {number}", line.strip()
        if stripped.startswith("#"):
            state.comment.append(stripped.lstrip("# ").strip())
            continue
        if stripped:
            yield from _entries(place, stripped, state, options)
        state.comment.clear()


def _entries(place: str, line: str, state: _State, options: CrontabOptions) -> Iterator[Entry]:
    assignment = _ASSIGNMENT.fullmatch(line)
    if assignment is not None:
        double, single, plain, value = assignment.groups()
        entry = _assigned(place, double or single or plain, value.strip("\"'"), state)
        if entry is not None:
            yield entry
        return
    yield _job(place, line, state, options)


def _assigned(place: str, name: str, value: str, state: _State) -> Entry | None:
    if name == "CRON_TZ":
        state.zone = value or state.default_zone
        return None
    reason = "the environment of commands is not carried over"
    if name == "TZ":
        reason = "it is the commands' own time zone: of the times, CRON_TZ or --timezone is"
    elif name == "MAILTO":
        reason = "a failed run is a dead letter here: on_failure or events can tell of it"
    elif name == "RANDOM_DELAY":
        reason = "not carried over: a job's window spreads its start"
    return Entry.left_out(place, name, reason)


def _job(place: str, line: str, state: _State, options: CrontabOptions) -> Entry:
    parts = (_MACRO if line.startswith("@") else _FIVE).fullmatch(line.removeprefix("-"))
    if parts is None:
        return Entry.left_out(place, "line", "is no entry, no assignment, no comment")
    schedule, command = parts[1], parts[2]
    notes: list[Note] = []
    if options.has_user:
        user, command = [*command.split(maxsplit=1), "", ""][:2]  # blanks or tabs
        notes.append(Note("user", f"{user} is not carried over: tasks have no user"))
    command = command.strip()
    if schedule == "@reboot":
        return Entry.left_out(place, schedule, f"nothing here boots; it ran: {command}")
    if "~" in schedule:
        message = f"{schedule}: a random time is not taken. Use a plain one, and window"
        return Entry.left_out(place, "schedule", message)
    if not command:
        return Entry.left_out(place, "command", "is empty")
    comment = [text for text in state.comment if text and not _is_entry(text)]
    wanted = comment[-1] if comment else _program(command)
    if "%" in command.replace("\\%", ""):
        notes.append(Note("command", "what follows % was its standard input"))
    called, note, stub = options.stubs.target(wanted.lower() if comment else wanted, command)
    body = {**called, "schedule": " ".join(schedule.split()), **_NO_CATCH_UP}
    if state.zone != "UTC":
        body["timezone"] = state.zone
    if len(comment) > 1 or len(wanted) > LONGEST_NAME:
        body["description"] = " ".join(comment)[:1024]
    return Entry(place, wanted, body, (*notes, note), stub)


def _is_entry(comment: str) -> bool:
    """True for a line that was commented out: it is no name of the next one."""
    if _ASSIGNMENT.fullmatch(comment) is not None:
        return True
    words = comment.split()
    if len(words) > 1 and words[0].startswith("@"):
        return True
    return len(words) > 5 and all(_CRON_FIELD.fullmatch(word) for word in words[:2])


def _program(command: str) -> str:
    """The name of the program that is run, whatever assignments and `cd` stand before it."""
    lexer = shlex.shlex(_STDIN.split(command)[0], posix=True, punctuation_chars=";&")
    lexer.whitespace_split, lexer.commenters = True, ""
    is_begun = False
    try:
        for word in lexer:
            if word in (";", "&&"):
                is_begun = False
            elif not is_begun and not re.match(r"\w+=", word):
                if word != "cd":
                    return word.rpartition("/")[2] or "command"
                is_begun = True
    except ValueError:  # a quotation that does not end
        pass
    return "command"
