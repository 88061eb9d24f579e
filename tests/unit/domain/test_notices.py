"""Texts of notifications: within Slack's limits, where what owners wrote does nothing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.notifying.channels import delivered_by
from carillon.domain.notifying.notice import (
    Notice,
    digest_notice,
    first_notice,
    notice_of_test,
    plain_text,
    subject_of,
)
from carillon.domain.notifying.notification import EmailChannel, SlackChannel, Told
from carillon.domain.notifying.slack import slack_message
from carillon.domain.notifying.window import Failing, Noted
from carillon.domain.run import RunKey, RunKind
from carillon.domain.targets import SecretReference, SnsTarget, WebhookTarget

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SPAN = (NOON, NOON + timedelta(minutes=15))
NASTY = "<!channel> & <https://evil.example|click> `x`"
LONG = "é" * 5_000


def noted(
    number: int = 0, name: str = "import", message: str = "the endpoint answered 503"
) -> Noted:
    run_id = f"{'0' * 26}_20261201T120000Z_scheduled_{number}"
    return Noted(Told.RUN_DEAD, NOON, f"job{number}", name, run_id, f"http_{number}", message)


def notices() -> Iterator[Notice]:
    link = "https://abc.execute-api.eu-west-1.amazonaws.com/console/"
    for name, message in (("import", "down"), (NASTY, NASTY), (LONG[:128], LONG)):
        events = [noted(number, f"{name} {number}"[:128], message) for number in range(200)]
        failing = [Failing(f"job{n}", f"{name} {n}"[:128], NOON) for n in range(50)]
        yield first_notice("ops", noted(0, name[:128], message), SPAN[1], link)
        for told, again in ((events, failing), (events, []), ([], failing)):
            made = digest_notice("ops", told, again, SPAN, "", is_complete=False)
            assert made is not None
            yield made
    yield notice_of_test("ops")


def _check_text(text: Any, kind: str, most: int) -> None:
    assert text["type"] == kind
    assert set(text) <= {"type", "text", "emoji"}
    assert 1 <= len(text["text"]) <= most


def check_blocks(body: dict[str, Any]) -> None:
    """By Slack's reference of blocks: what a header, a section and a context may have."""
    assert set(body) == {"text", "blocks"}
    assert 1 <= len(body["blocks"]) <= 50
    for block in body["blocks"]:
        match block["type"]:
            case "header":
                assert set(block) == {"type", "text"}
                _check_text(block["text"], "plain_text", 150)
            case "section":
                assert set(block) == {"type", "text"}
                _check_text(block["text"], "mrkdwn", 3_000)
            case "context":
                assert set(block) == {"type", "elements"}
                assert 1 <= len(block["elements"]) <= 10
                for element in block["elements"]:
                    _check_text(element, "mrkdwn", 3_000)
            case other:
                raise AssertionError(other)


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_digest_that_leaves_something_out_says_so_in_every_channel(is_complete: bool) -> None:
    digest = digest_notice("ops", [noted()], [], SPAN, "", is_complete=is_complete)
    assert digest is not None
    assert digest["complete"] is is_complete
    for text in (slack_message(digest)["text"], plain_text(digest), subject_of(digest)):
        assert ("and more" in text) is not is_complete


@pytest.mark.parametrize("notice", [*notices()], ids=lambda notice: notice["kind"])
def test_slack_takes_every_message(notice: Notice) -> None:
    body = slack_message(notice)
    check_blocks(body)
    assert body["blocks"][0]["type"] == "header"


def test_text_of_an_owner_names_no_channel_and_no_link() -> None:
    for notice in notices():
        body = slack_message(notice)
        shown = [block["text"]["text"] for block in body["blocks"] if block["type"] == "section"]
        for text in (body["text"], *shown):
            assert "<!" not in text
            assert "<https://evil" not in text


def test_the_check_of_blocks_can_fail() -> None:
    body = slack_message(notice_of_test("ops"))
    body["blocks"][0]["text"]["text"] = "x" * 151
    with pytest.raises(AssertionError):
        check_blocks(body)


def test_each_channel_has_its_form() -> None:
    notice = first_notice("ops", noted(), SPAN[1], "")
    slack, body = delivered_by(SlackChannel(url=SecretReference(secret="s")), notice)
    assert json.loads(body)["blocks"]
    assert slack.type == "slack"
    _, body = delivered_by(WebhookTarget(url="https://x.example/"), notice)
    assert json.loads(body) == notice
    topic, body = delivered_by(SnsTarget(topic_arn="arn:aws:sns:eu-west-1:123456789012:t"), notice)
    assert isinstance(topic, SnsTarget)
    assert (topic.subject, body) == ("Carillon: import failed", plain_text(notice))
    _, body = delivered_by(EmailChannel(address="a@b.example"), notice)
    assert json.loads(body)["subject"] == "Carillon: import failed"


def test_a_callback_that_failed_is_no_failure_of_its_job() -> None:
    about = RunKey("o", "0" * 26, RunKind.SCHEDULED, NOON)
    event = replace(noted(), run_id=about.callback.run_id)
    assert first_notice("ops", event, SPAN[1], "")["summary"] == "a callback of import failed"
    event = replace(event, run_id=about.run_id)
    assert first_notice("ops", event, SPAN[1], "")["summary"] == "import failed"
    works = digest_notice("ops", (), [Failing("a", "import", NOON, of_callback=True)], SPAN, "")
    assert works is not None
    assert plain_text(works).count("a callback of import") == 2
    assert slack_message(works)["blocks"][1]["text"]["text"].endswith("a callback of import")


def test_a_subject_is_one_line_of_ascii() -> None:
    for notice in notices():
        subject = subject_of(notice)
        assert subject.isascii()
        assert subject.isprintable()
        assert len(subject) <= 100


def test_nothing_to_tell_is_no_message() -> None:
    assert digest_notice("ops", [], [], SPAN, "") is None
