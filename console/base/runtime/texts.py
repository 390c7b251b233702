"""Texts that tenants chose, as PostgreSQL, JSON and logs can hold them.

Kafka takes any text for the names of groups and clients, and earlier releases did for users, ACLs
and quotas. PostgreSQL stores neither NUL nor lone surrogates, and indexes no long text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Stands for what was left out.
CUT = "\N{HORIZONTAL ELLIPSIS}"
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


def storable_short(text: str, chars_max: int) -> str:
    """As `storable`; a text that is too long ends with its digest, as `storable_name` does it."""
    stored = storable(text)
    return stored if len(stored) <= chars_max else storable_name(text, chars_max)


def bounded_json(value: object, *, text_chars_max: int, chars_max: int) -> object:
    """A JSON value that PostgreSQL stores, with about so many characters at most.

    Each of its texts, keys too, is what `storable_short` gives for it. Of a value that has more
    characters in all the last items are left out; an ellipsis stands for them.
    """
    return _bounded(value, text_chars_max, [chars_max])


def _bounded(value: object, text_chars_max: int, left: list[int]) -> object:
    """As `bounded_json`; `left[0]` is how many characters may still be given."""
    match value:
        case str():
            text = storable_short(value, text_chars_max)
            left[0] -= len(text)
            return text
        case Mapping():
            pairs: dict[str, object] = {}
            for key, item in value.items():
                if left[0] <= 0:
                    pairs[CUT] = CUT
                    break
                name = storable_short(str(key), text_chars_max)
                left[0] -= len(name)
                pairs[name] = _bounded(item, text_chars_max, left)
            return pairs
        case list() | tuple():
            items: list[object] = []
            for item in value:
                if left[0] <= 0:
                    items.append(CUT)
                    break
                items.append(_bounded(item, text_chars_max, left))
            return items
        case _:
            left[0] -= len(str(value))
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
    return f"{kept}{CUT}{digest}"
