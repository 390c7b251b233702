"""Texts that tenants chose, as PostgreSQL, JSON and logs can hold them.

Kafka takes any text for the names of groups and clients, and earlier releases did for users, ACLs
and quotas. PostgreSQL stores neither NUL nor lone surrogates, and indexes no long text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DIGEST_BYTES = 8
# The ellipsis and the digest in hexadecimal digits.
_ENDING_CHARS = 1 + 2 * _DIGEST_BYTES


def storable(text: str) -> str:
    """The text with U+FFFD for each character that PostgreSQL does not store."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def is_storable(text: str) -> bool:
    """Whether PostgreSQL stores the text as it is."""
    return _UNSTORABLE.search(text) is None


def is_line(text: str) -> bool:
    """Whether all characters of a text are seen, on one line: a name that somebody sets now.

    Names of earlier releases may have others, and are shown as they are.
    """
    return text.isprintable()


def storable_json(value: object) -> object:
    """A JSON value with `storable` applied to each of its texts, keys too."""
    match value:
        case str():
            return storable(value)
        case Mapping():
            return {storable(str(key)): storable_json(item) for key, item in value.items()}
        case list() | tuple():
            return [storable_json(item) for item in value]
        case _:
            return value


def storable_name(name: str, chars_max: int) -> str:
    """The name, or what stands for it where it is too long or cannot be stored.

    That ends with a digest of the name, so that two names stay two.
    """
    if len(name) <= chars_max and is_storable(name):
        return name
    whole = name.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()
    kept = storable(name[: chars_max - _ENDING_CHARS])
    return f"{kept}\N{HORIZONTAL ELLIPSIS}{digest}"
