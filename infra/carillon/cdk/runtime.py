"""The Lambda runtime: the Python that synthesises, so that what was tested is what is deployed."""

import re

from aws_cdk import aws_lambda as lambda_

OLDEST_MINOR = 11
"""Carillon runs on Python 3.11 and newer."""

_OFFERED = {
    f"3.{match[1]}": match[0]
    for match in map(re.compile(r"PYTHON_3_(\d\d)").fullmatch, dir(lambda_.Runtime))
    if match and int(match[1]) >= OLDEST_MINOR
}
"""Lambda's Pythons that this CDK knows, and what it calls them."""


def chosen_python(pinned: str, running: str) -> str:
    """The version of the Python that is running, such as 3.11.

    Raises ValueError if another one is pinned ("" pins none), or if Lambda has none of its version.
    """
    if pinned and pinned != running:
        raise ValueError(
            f"{pinned} is pinned, but {running} synthesises: make clean, then "
            f"make setup PYTHON=/path/to/python{pinned}; or pin {running}"
        )
    if running not in _OFFERED:
        offered = ", ".join(sorted(_OFFERED))
        raise ValueError(f"{running} synthesises, for which there is no runtime: use {offered}")
    return running


def runtime_of(version: str) -> lambda_.Runtime:
    """Lambda's runtime of a version that it has."""
    runtime = getattr(lambda_.Runtime, _OFFERED[version])
    assert isinstance(runtime, lambda_.Runtime)
    return runtime
