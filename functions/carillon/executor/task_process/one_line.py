"""Text from outside (results, errors, answers) in the form that the history keeps."""

from carillon.domain.run import cut

KIND_LIMIT_CHARACTERS = 128
"""Longer names of error classes are cut here."""


def one_line(text: str) -> str:
    """The text cut to the history's length, on one line, without what cannot be printed.

    That drops line ends, terminal escapes, and lone surrogates, which no store can encode.
    """
    return "".join(character if character.isprintable() else " " for character in cut(text)).strip()


def exception_line(error: BaseException) -> str:
    """The exception's own message; never raises."""
    try:
        return one_line(str(error))
    except Exception:  # a broken __str__ is the task's
        return "(its message cannot be shown)"


def kind_of(error: BaseException) -> str:
    """The error's class as the history's kind, cut at KIND_LIMIT_CHARACTERS."""
    return one_line(type(error).__name__)[:KIND_LIMIT_CHARACTERS]
