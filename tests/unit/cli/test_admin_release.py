"""`carillon admin release`: what is live, and in which order functions switch."""

from typing import Any

import pytest

from carillon.cdk.releases import Versions, described, switches

OLD, NEW = "1a2b3c4d", "5e6f7a8b"


def versions(name: str, live: int) -> Versions:
    return Versions(name, name, {OLD: 3, NEW: 4}, {}, live)


TICK, API, EXECUTOR = "tick", "api", "executor"


@pytest.mark.parametrize(
    ("live", "release", "order"),
    [
        (3, NEW, [EXECUTOR, TICK, API]),
        (4, OLD, [TICK, API, EXECUTOR]),
        (4, NEW, []),
    ],
    ids=["on", "back", "is live already"],
)
def test_who_sends_messages_is_never_newer_than_who_receives_them(
    live: int, release: str, order: list[str]
) -> None:
    functions = [versions(name, live) for name in (TICK, EXECUTOR, API)]
    switched = switches(functions, release)
    assert [name for name, _ in switched] == order
    assert {version for _, version in switched} <= {3, 4}


def test_a_release_that_was_deployed_again_is_no_later_one_for_that() -> None:
    again = {OLD: 5, NEW: 4}
    functions = [Versions(name, name, again, {}, 5) for name in (TICK, EXECUTOR)]
    assert [name for name, _ in switches(functions, NEW)] == [EXECUTOR, TICK]


def test_what_was_cut_off_is_ended_by_repeating_it() -> None:
    functions = [versions(TICK, 3), versions(EXECUTOR, 4), versions(API, 4)]
    assert switches(functions, OLD) == [(API, 3), (EXECUTOR, 3)]


def test_a_release_that_a_function_lacks_switches_nothing() -> None:
    functions = [versions(TICK, 4), Versions(EXECUTOR, EXECUTOR, {NEW: 9}, {}, 9)]
    with pytest.raises(LookupError, match="executor has no version of release 1a2b3c4d; it has 5e"):
        switches(functions, OLD)


def test_versions_are_read_by_their_descriptions() -> None:
    def version(number: str, description: str, minute: int) -> dict[str, Any]:
        at = f"2026-11-22T18:{minute:02}:00.000+0000"
        variables = {"Variables": {"POWERTOOLS_SERVICE_NAME": TICK}}
        told = {"Version": number, "Description": description, "LastModified": at}
        return told | {"Environment": variables}

    found = Versions.of(
        "Carillon-Tick",
        [
            version("$LATEST", described("Sends", OLD), 9),
            version("1", described("Sends", OLD), 1),
            version("2", described("Sends", NEW), 2),
            version("3", described("Sends", OLD), 3),
            version("4", "made by hand", 4),
        ],
        "3",
    )
    assert (found.service, found.by_release, found.live) == (TICK, {OLD: 3, NEW: 2}, 3)
    assert [at.minute for at in found.published_at.values()] == [1, 2]
