"""Names of jobs as addresses: the id follows from owner and name."""

import base64
import hashlib
import re
import unicodedata

MANIFEST_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Of the name under which a manifest manages its jobs."""
LONGEST_NAME_CHARACTERS = 1_536
"""No name has more, as its owner has spelt it in a path."""
_LISTED_BYTES = 900
"""A sort key may have 1,024 bytes."""
JOB_ID = re.compile(r"[0-9a-v]{26}", re.ASCII)


def job_id_of(owner: str, name: str) -> str:
    """The job id, 26 characters of base32hex, as a function of owner and name: names that differ in
    case only have one id, so no owner has two such jobs.

    Ids are spread evenly, and in the order of the digests that they stand for.
    """
    digest = hashlib.sha256(f"name\0{owner}\0{folded(name)}".encode()).digest()
    return base64.b32hexencode(digest).decode().lower()[:26]


def is_job_id(text: str) -> bool:
    """True if the text has the form of every job id; no name has it."""
    return JOB_ID.fullmatch(text) is not None


def folded(name: str) -> str:
    """A name without regard to case and to the composition of its letters (Unicode, NFC); a text
    that is too long for a name as it is, since accents take quadratic time to be put in order."""
    if len(name) > LONGEST_NAME_CHARACTERS:
        return name
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def list_name(name: str) -> str:
    """A name, or the beginning of one, as lists are ordered by it: folded, and cut."""
    return folded(name).encode()[:_LISTED_BYTES].decode(errors="ignore")
