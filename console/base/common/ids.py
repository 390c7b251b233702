"""Identifiers: a kind, an underscore, and 20 characters of lowercase base32 (100 random bits)."""

from __future__ import annotations

import base64
import hashlib
import secrets

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
RANDOM_CHARS = 20
# The length of the columns: room for the longest kind, its underscore and the random part.
ID_CHARS_MAX = 32


def new_id(kind: str) -> str:
    """Returns a new identifier, such as `cl_…` for the kind `cl`."""
    return f"{kind}_{random_text(RANDOM_CHARS)}"


def derived_id(kind: str, *parts: object) -> str:
    """Returns an identifier that is a hash of `parts`, so that it is the same each time."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return f"{kind}_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"


def random_text(length: int) -> str:
    """Returns random lowercase base32, with five random bits a character."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def is_id(text: str, kind: str) -> bool:
    """Returns whether a text has the format of an identifier of a kind."""
    prefix, _, rest = text.partition("_")
    return prefix == kind and len(rest) == RANDOM_CHARS and set(rest) <= set(ALPHABET)
