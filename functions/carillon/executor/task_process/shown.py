"""The variables that a task process shows its tasks, and that change from call to call."""

import os
from collections.abc import Mapping


def show(variables: Mapping[str, str]) -> None:
    """Put them into this process's environment, where AWS's SDKs look for credentials."""
    os.environ.update(variables)
