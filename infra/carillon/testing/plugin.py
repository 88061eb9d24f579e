"""The plugin of pytest: the fixture `carillon`, and the marker of its options.

Imported at each start of pytest, so it imports nothing of Carillon before the fixture is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from carillon.testing.world import World

_MARKER = (
    "carillon(start, zone, seed, faults, executor_timeout_seconds, real_seconds): options of the "
    "fixture `carillon`: jobs and tasks in virtual time"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def carillon(request: pytest.FixtureRequest) -> Iterator["World"]:
    """A deployment in virtual time; `carillon.testing.world.World` has its methods."""
    try:
        from carillon.testing.world import World, options_of
    except ModuleNotFoundError as error:
        library = str(error.name).partition(".")[0]
        if library == "carillon":
            raise
        message = f"{library} is missing: pip install 'carillon[testing]'"
        raise pytest.UsageError(message) from error
    marked: dict[str, Any] = {}
    for marker in reversed([*request.node.iter_markers("carillon")]):  # the closest counts
        if marker.args:
            raise pytest.UsageError("the marker carillon takes its options by name: start=...")
        marked.update(marker.kwargs)
    world = World(request.config.rootpath, options_of(marked))
    yield world
    world.close()
