"""How a caller's text is shown in an error message."""

_SHOWN_CHARACTERS = 60


def quoted(text: str) -> str:
    """The text in double quotes, cut where it is long, control characters made visible."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + '"'
