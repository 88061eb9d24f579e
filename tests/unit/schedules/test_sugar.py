"""Other spellings: plain words, macros, EventBridge's forms. Each has one canonical text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.schedules import parse_schedule
from tests.unit.schedules.strategies import exact


@pytest.mark.parametrize(
    ("words", "text"),
    [
        # Debian's crontab(5)
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        (" @MIDNIGHT ", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@every 5m", "every 5m"),
        ("@every 1h30m0s", "every 1h30m"),
        ("hourly", "0 * * * *"),
        ("Hourly At :17", "17 * * * *"),
        ("hourly at :05:30", "30 5 * * * *"),
        ("every hour at :17", "17 * * * *"),
        ("daily", "0 0 * * *"),
        ("daily at 09:00", "0 9 * * *"),
        ("daily at 9:05:30", "30 5 9 * * *"),
        ("daily at 09:00:00", "0 9 * * *"),
        ("every day at 23:59", "59 23 * * *"),
        ("weekdays at 09:00", "0 9 * * 1-5"),
        ("every weekday at 09:00", "0 9 * * 1-5"),
        ("weekends at 09:00", "0 9 * * 0,6"),
        ("weekly", "0 0 * * 0"),
        ("weekly on mon at 09:00", "0 9 * * MON"),
        ("weekly on Monday, thursday and SUN at 09:00", "0 9 * * MON,THU,SUN"),
        ("mondays at 09:00", "0 9 * * MON"),
        ("tues,thurs at 09:00", "0 9 * * TUE,THU"),
        ("every Tuesday and Friday at 10:30", "30 10 * * TUE,FRI"),
        ("monthly", "0 0 1 * *"),
        ("monthly at 09:00", "0 9 1 * *"),
        ("monthly on 15 at 09:00", "0 9 15 * *"),
        ("monthly on 31st at 09:00", "0 9 31 * *"),
        ("monthly on last day at 09:00", "0 9 L * *"),
        ("monthly on last weekday at 09:00", "0 9 LW * *"),
        ("monthly on last friday at 09:00", "0 9 * * 5L"),
        ("monthly on last sun at 09:00", "0 9 * * 0L"),
        ("monthly on second tuesday at 09:00", "0 9 * * TUE#2"),
        ("every month on 2 at 03:00", "0 3 2 * *"),
        ("every minute", "every 1m"),
        ("every hour", "every 1h"),
        ("every day", "every 1d"),
        ("every 2 hours", "every 2h"),
        ("every 90 seconds", "every 1m30s"),
        ("every 1 Hour 30 Minutes", "every 1h30m"),
        ("every 2 weeks offset 1 day", "every 14d offset 1d"),
        ("PT25M", "every 25m"),
        ("p1d", "every 1d"),
        ("every PT25M", "every 25m"),
        ("PT1H offset PT5M", "every 1h offset 5m"),
        ("every hour after finish", "every 1h after finish"),
        # EventBridge user guide: rate(…) and at(…)
        ("rate(1 minute)", "every 1m"),
        ("rate(5 minutes)", "every 5m"),
        ("rate(1 hour)", "every 1h"),
        ("Rate( 2  Days )", "every 2d"),
        ("at(2026-12-01T09:00:00)", "at 2026-12-01T09:00:00"),
    ],
)
def test_words_are_another_spelling(words: str, text: str) -> None:
    schedule = parse_schedule(words)
    assert schedule.text == text
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@reboot", "there is no machine that starts"),
        ("@dayly", 'no macro: did you mean "@daily"[?]'),
        ("@every", 'needs an interval, as in "every 25m"'),
        ("@every 5x", '"5x" is not a duration'),
        ("rate(1 hours)", 'use "rate[(]1 hour[)]"'),
        ("rate(5 minute)", 'use "rate[(]5 minutes[)]"'),
        ("rate(0 minutes)", "whole number from 1"),
        ("rate(-1 minutes)", "whole number from 1"),
        ("rate(1.5 hours)", "whole number from 1"),
        ("rate(5 seconds)", 'for others "every 90s"'),
        ("rate(5minutes)", "whole number from 1"),
        ("rate()", "whole number from 1"),
        ("rate(5 minutes", 'does not end with "[)]"'),
        ("at(noon)", '"noon" is no time'),
        ("CRON_TZ=Europe/Riga 0 9 * * *", 'the timezone field, "timezone": "Europe/Riga"'),
        ("TZ=UTC 0 9 * * *", "use the timezone field"),
        ("hourly at 17", 'use "hourly at :17"'),
        ("hourly at :60", 'use "hourly at :17"'),
        ("hourly at", 'use "hourly at :17"'),
        ("daily at 9am", '"9am" at position 10 is no time of day: use 00:00 to 23:59'),
        ("every day at 9am", '"every day at 9am" is no schedule: "9am" at position 14 '),
        ("  Daily   at 9AM ", '"9AM" at position 14 is no time of day'),
        ("every weekday", 'end with a time of day, as in "every weekday at 09:00"'),
        ("every 2 days at 09:00", 'no time of day. Use a cron expression as "0 9 [*]/2 [*] [*]"'),
        ("0 9 * *", "a cron expression has five fields, .*; this has 4"),
        ("daily at 24:00", '"24:00" at position 10'),
        ("daily at 9", '"9" at position 10'),
        ("daily on mon at 09:00", 'use "daily at 09:00"'),
        ("weekdays", 'end with a time of day, as in "weekdays at 09:00"'),
        ("weekly on mondey at 09:00", '"mondey" is no day of the week: did you mean "monday"'),
        ("weekly mon at 09:00", 'use "weekly on mon at 09:00"'),
        ("monthly on 0 at 09:00", "a day of 1 to 31"),
        ("monthly on 32 at 09:00", "a day of 1 to 31"),
        ("monthly on sixth friday at 09:00", "a day of 1 to 31"),
        ("every month", "has no fixed number of seconds"),
        ("every 2 years", "has no fixed number of seconds"),
        ("every two hours", "whole number before each unit"),
        ("every 2 hours 30", "is not a duration"),
        ("every 99999999999 hours", "whole number before each unit"),
        ("every 5m after lunch", '"after lunch" is unknown: use "after finish"'),
        ("every 5m offset 1m after finish", "means nothing after finish"),
        ("every after finish", "needs an interval"),
        ("evry 5m", 'did you mean "every"[?]'),
        ("dayly at 09:00", 'did you mean "daily"[?]'),
        ("09:00", 'did you mean "daily at 09:00"[?]'),
        ("25m", 'did you mean "every 25m"[?]'),
        ("2026-12-01T09:00:00", 'did you mean "at 2026-12-01T09:00:00"[?]'),
        ("PT", "is not a duration"),
        ("xyzzy", '"xyzzy" is no schedule: use "at'),
    ],
)
def test_refusals_say_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        parse_schedule(text)
    assert caught.value.field == "schedule"


_WORDS = """
at on every daily weekly monthly hourly last first day mon mondays and 1 31 :17 09:00 5m , offset
after finish rate( ) cron( at( @ @daily * 0 | except PT5M 2026-12-01T09:00:00
"""
_texts = st.lists(st.sampled_from(_WORDS.split()), max_size=9).map(" ".join)


@exact
@given(_texts | st.text(max_size=40))
def test_any_text_is_refused_or_has_a_canonical_text(text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except InvalidFieldError:
        return
    assert parse_schedule(schedule.text) == schedule
