"""What holds for the tests of every layer."""

from functools import cache

import botocore.loaders
import botocore.session

from carillon.garbage import spare_what_is_loaded

# Each session would read the descriptions of the services anew: most of what a client costs.
botocore.session.create_loader = cache(botocore.loaders.create_loader)


def pytest_collection_finish() -> None:
    """The collector would walk all tests and libraries over and over: a tenth of the time."""
    spare_what_is_loaded()
