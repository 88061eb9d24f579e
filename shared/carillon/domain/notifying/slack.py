"""The message of a notification as blocks of Slack (Block Kit), within Slack's limits."""

from collections.abc import Iterator
from typing import Any

from carillon.domain.notifying.notice import Notice, recovered_of

HEADER_CHARACTERS = 150
TEXT_CHARACTERS = 3_000
MOST_BLOCKS = 50
_MESSAGE_CHARACTERS = 300
_ICONS = {"first": "🔴", "digest": "🔴", "recovered": "✅", "test": "🔔"}


def slack_message(notice: Notice) -> dict[str, Any]:
    """The body for an incoming webhook; `text` is what notifications of the device show."""
    title = f"{_ICONS[notice['kind']]} {notice['summary']}"
    blocks = [
        {"type": "header", "text": _plain(title)},
        *(_section(text) for text in _sections(notice)),
        {"type": "context", "elements": [_mrkdwn(_footer(notice))]},
    ]
    return {"text": _cut(_escaped(title), TEXT_CHARACTERS), "blocks": blocks[:MOST_BLOCKS]}


def _sections(notice: Notice) -> Iterator[str]:
    event = notice.get("event")
    if event is not None:
        error = event["error"]
        said = f"\n`{_code(error['kind'])}` {_short(error['message'])}" if error else ""
        run = f"\nrun `{_code(event['run_id'])}`" if event["run_id"] else ""
        yield f"*{_escaped(event['job_name'])}* at {event['at']}{said}{run}"
    if notice.get("errors"):
        yield "*Errors*\n" + "\n".join(
            f"{each['count']} x `{_code(each['kind'])}` {_short(each['message'])}"
            for each in notice["errors"]
        )
    if notice.get("jobs"):
        lines = [f"{each['count']} x {_escaped(each['job_name'])}" for each in notice["jobs"]]
        more = [f"and {notice['more_jobs']} more"] if notice["more_jobs"] else []
        yield "*Jobs*\n" + "\n".join([*lines, *more])
    if notice.get("recovered"):
        yield "*Works again*\n" + "\n".join(map(_escaped, recovered_of(notice)))
    if notice["link"]:
        yield f"<{notice['link']}|Open the console>"


def _footer(notice: Notice) -> str:
    parts = [f"notification *{_escaped(notice['notification'])}*"]
    if "until" in notice:
        parts.append(f"{notice['from']} to {notice['until']}")
    if "next_message_after" in notice:
        parts.append(f"next message not before {notice['next_message_after']}")
    return " · ".join(parts)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(text)}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": _cut(text, HEADER_CHARACTERS), "emoji": True}


def _mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": _cut(text, TEXT_CHARACTERS)}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _short(text: str) -> str:
    return _escaped(_cut(text, _MESSAGE_CHARACTERS))


def _escaped(text: str) -> str:
    """Text of an owner cannot name a channel, a person or a link (Slack: escaping text)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    return _escaped(text).replace("`", "'")
