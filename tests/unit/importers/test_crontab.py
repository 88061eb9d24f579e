"""Crontabs, as Debian's cron and cronie read them."""

from typing import Any

import pytest

from carillon.importers.crontab import CrontabOptions, crontab_entries
from carillon.importers.importing import Imported
from carillon.importers.stubs import Stubs
from tests.unit.importers.kit import fire_times, losses, made_of, read_back, told

CRONTAB = """\
# m h dom mon dow command
MAILTO=ops@example.com
0 1 * * *   /usr/local/bin/plain

CRON_TZ = "Europe/Riga"

# Nightly backup of the database
30 3 * * * pg_dump --all > /backup
# The two days on which
# invoices go out
0 9 1,15 * 5   cd /srv/app && FAST=1 ./invoices.py
#0 5 * * * /usr/local/bin/switched-off
@daily /usr/sbin/logrotate /etc/logrotate.conf
@reboot /usr/local/bin/warm-up
-*/20 0 28 3 * /usr/local/bin/quiet
0~30 4 * * * /usr/local/bin/somewhen
0 0 * * 8 /usr/local/bin/never
CRON_TZ=
0 2 * * * echo Riga%is%stdin
what is this
"""
PAUSES = {"catch_up": "skip", "retry": {"max_attempts": 1}}


def made(text: str, **options: Any) -> Imported:
    return made_of(crontab_entries(text, CrontabOptions(**options)))


def test_a_line_becomes_a_job() -> None:
    jobs = made(CRONTAB).jobs

    assert jobs["Nightly backup of the database"] == {
        "schedule": "30 3 * * *",
        "timezone": "Europe/Riga",
        "target": {"type": "task", "name": "nightly_backup_of_the_database"},
        **PAUSES,
    }
    assert jobs["invoices go out"]["description"] == "The two days on which invoices go out"
    assert jobs["plain"] == {
        "schedule": "0 1 * * *",
        "target": {"type": "task", "name": "plain"},
        **PAUSES,
    }
    assert list(jobs) == [
        "plain", "Nightly backup of the database", "invoices go out", "logrotate", "quiet", "echo",
    ]  # fmt: skip


def test_every_loss_is_listed() -> None:
    found = made(CRONTAB)

    assert losses(found) == {
        "line 2": ["MAILTO"],
        "line 3": ["target"],
        "line 8": ["target"],
        "line 11": ["target"],
        "line 13": ["target"],
        "line 14": ["@reboot"],
        "line 15": ["target"],
        "line 16": ["schedule"],
        "line 17": ["target", "schedule"],
        "line 19": ["command", "target"],
        "line 20": ["line"],
    }
    assert "cd /srv/app && FAST=1 ./invoices.py" in told(found, "line 11", "target")
    assert "/usr/local/bin/warm-up" in told(found, "line 14", "@reboot")


def test_jobs_fire_as_cron_does() -> None:
    """27 March 2027 is a Saturday; at 03:00 on the 28th clocks in Riga show 04:00."""
    found = fire_times(read_back(made(CRONTAB)), "2027-03-25T00:00:00", "2027-04-02T12:00:00", 9)

    assert found["Nightly backup of the database"] == [
        "2027-03-25T01:30:00Z", "2027-03-26T01:30:00Z", "2027-03-27T01:30:00Z",
        # 03:30 is skipped on the 28th, and runs when the clocks have jumped.
        "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z", "2027-03-30T00:30:00Z",
        "2027-03-31T00:30:00Z", "2027-04-01T00:30:00Z", "2027-04-02T00:30:00Z",
    ]  # fmt: skip
    # The 1st or 15th, or a Friday: either is enough.
    assert found["invoices go out"] == [
        "2027-03-26T07:00:00Z", "2027-04-01T06:00:00Z", "2027-04-02T06:00:00Z",
    ]  # fmt: skip
    assert found["quiet"] == [
        "2027-03-27T22:00:00Z",
        "2027-03-27T22:20:00Z",
        "2027-03-27T22:40:00Z",
    ]
    assert found["logrotate"][:2] == ["2027-03-25T22:00:00Z", "2027-03-26T22:00:00Z"]
    assert found["echo"][0] == "2027-03-25T02:00:00Z"


def test_the_zone_of_lines_before_any_other() -> None:
    jobs = made(CRONTAB, timezone="America/New_York").jobs

    assert jobs["plain"]["timezone"] == "America/New_York"
    assert jobs["quiet"]["timezone"] == "Europe/Riga"
    # An empty CRON_TZ goes back.
    assert jobs["echo"]["timezone"] == "America/New_York"


def test_the_time_zone_of_commands_moves_no_time() -> None:
    found = made("TZ=Asia/Tokyo\n0 0 * * * /bin/job\n")

    assert "timezone" not in found.jobs["job"]
    assert "CRON_TZ" in told(found, "line 1", "TZ")


def test_a_zone_that_is_none_leaves_its_lines_out() -> None:
    found = made("CRON_TZ=Europe/Rigga\n0 0 * * * /bin/job\n")

    assert losses(found) == {"line 2": ["target", "timezone"]}
    assert found.jobs == {}


@pytest.mark.parametrize("blank", [" ", "\t", " \t "], ids=repr)
def test_the_column_of_users(blank: str) -> None:
    line = f"17 *{blank}* * *{blank}root{blank}cd / && run-parts /etc/cron.hourly\n"
    found = made(line, has_user=True)

    assert list(found.jobs) == ["run-parts"]
    assert told(found, "line 1", "user").startswith("root is not")
    assert told(found, "line 1", "target").endswith("was: cd / && run-parts /etc/cron.hourly")


def test_commands_as_calls_of_a_webhook() -> None:
    stubs = Stubs("billing.", "https://example.com/run")
    found = made("0 1 * * * /bin/a\n0 2 * * * /opt/a\n", stubs=stubs)

    assert [job["payload"] for job in found.jobs.values()] == [
        {"task": "billing.a"}, {"task": "billing.a_2"},
    ]  # fmt: skip
    assert found.jobs["a"]["target"] == {"type": "webhook", "url": "https://example.com/run"}
    assert found.stubs == []


@pytest.mark.parametrize("line", ["0 1 * *", "@daily", "* * * * *", "@reboot", "   x"])
def test_what_is_no_entry_is_told(line: str) -> None:
    found = made(f"{line}\n")

    assert (found.left_out, len(found.lines)) == (1, 1)


def test_comments_and_blanks_are_nothing() -> None:
    assert made("\n# a comment\n   \n\t# another\n").lines == ()


def test_a_comment_further_up_is_no_name() -> None:
    assert list(made("# Section\n\n0 1 * * * /bin/a\n").jobs) == ["a"]


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("#DB_PASSWORD=secret\n0 1 * * * /bin/a", "a"),
        ("0 1 * * * PASSWORD='my secret' /bin/a", "a"),
        ("0 1 * * * PASSWORD='my;secret && more' MODE=x cd /srv && /bin/a", "a"),
        ("0 1 * * * cd '/a b' && PASSWORD=\"my secret\" /bin/a", "a"),
        ("0 1 * * * mail%secret", "mail"),
        ("0 1 * * * PASSWORD='my secret", "command"),
    ],
)
def test_no_secret_of_a_line_is_in_its_job(lines: str, name: str) -> None:
    found = made(f"{lines}\n")

    assert list(found.jobs) == [name]
    assert "secret" not in str(found.jobs)
