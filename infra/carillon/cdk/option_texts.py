"""Options that are texts of a known form: each check answers the text, or raises ValueError."""

import re
from ipaddress import ip_network


def network(text: str) -> str:
    return str(ip_network(text))


def module(text: str) -> str:
    if not all(name.isidentifier() for name in text.split(".")):
        raise ValueError(f"{text!r} is not the name of a Python module")
    return text


def origin(text: str) -> str:
    if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d{1,5})?", text):
        raise ValueError(f"{text!r} is no origin, such as https://console.example.com")
    return text


def topic(text: str) -> str:
    """Alarms publish to standard topics only."""
    if not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}", text):
        raise ValueError(f"{text!r} is no standard topic: expected arn:aws:sns:REGION:ACCOUNT:NAME")
    return text


def email_address(text: str) -> str:
    if not re.fullmatch(r"[^@\s,]+@[^@\s,]+\.[^@\s,.]+", text):
        raise ValueError(f"{text!r} is no e-mail address, such as on-call@example.com")
    return text
