"""The target and payload with which a channel is called, for a message of a notification."""

import json

from carillon.domain.notifying.notice import Notice, notice_text, plain_text, subject_of
from carillon.domain.notifying.notification import AnyChannel, EmailChannel, SlackChannel
from carillon.domain.notifying.slack import slack_message
from carillon.domain.targets import SnsTarget


def delivered_by(channel: AnyChannel, notice: Notice) -> tuple[AnyChannel, str]:
    """The target to be called, and the payload: of a topic the text, of all others JSON."""
    match channel:
        case SlackChannel():
            return channel, _json(slack_message(notice))
        case EmailChannel():
            return channel, _json({"subject": subject_of(notice), "text": plain_text(notice)})
        case SnsTarget():
            subject = channel.subject or subject_of(notice)
            return channel.model_copy(update={"subject": subject}), plain_text(notice)
    return channel, notice_text(notice)


def _json(body: object) -> str:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)
