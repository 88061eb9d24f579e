"""Python's garbage collector in a process that has loaded all it needs."""

import gc

_YOUNG = 10_000
"""New objects after which the youngest generation is looked at; Python's default is 700. A page of
the wheel, or a chunk's jobs, are thousands, of which none is garbage."""


def spare_what_is_loaded() -> None:
    """Have the collector pass over everything that there is by now, for handlers to call last.

    Modules and models (botocore's, pydantic's) are more than 100,000 objects that last as long as
    their process. A full collection, which falls into some batch or request, walks them all: 72 ms
    of CPU in an executor, 85 in the api (decision 139).
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
