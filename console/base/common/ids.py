"""Identifiers: a kind, an underscore, and 20 characters of lowercase base32 (100 random bits)."""

from __future__ import annotations

import secrets

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
RANDOM_CHARS = 20
# Room for the longest kind and its underscore.
ID_CHARS_MAX = 32


def new_id(kind: str) -> str:
    """A fresh identifier, such as `cl_…` for the kind `cl`."""
    return f"{kind}_{random_text(RANDOM_CHARS)}"


def random_text(length: int) -> str:
    """Random lowercase base32, five bits a character."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def is_id(text: str, kind: str) -> bool:
    """Tells whether a text has the shape of an identifier of a kind."""
    prefix, _, rest = text.partition("_")
    return prefix == kind and len(rest) == RANDOM_CHARS and set(rest) <= set(ALPHABET)
