"""The format of API keys, `fk_<key part of the id>_<secret>`, and how one is checked. Pure."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from console.base.common.ids import RANDOM_CHARS, is_id, random_text

PREFIX = "fk"
SECRET_CHARS = 32


@dataclass(frozen=True, slots=True)
class KeySecret:
    """A new key's secret text, to be shown once, and the verifier that is stored for it."""

    text: str
    verifier: str


def new_secret(key_id: str) -> KeySecret:
    """Makes a secret for a key. Its text holds the key's id, by which the row is looked up."""
    text = f"{PREFIX}_{key_id.removeprefix('key_')}_{random_text(SECRET_CHARS)}"
    return KeySecret(text=text, verifier=verifier_of(text))


def key_id_of(text: str) -> str | None:
    """Returns the key id that a secret's text holds, or None if the text has another format."""
    parts = text.split("_")
    if len(parts) != 3 or parts[0] != PREFIX or len(parts[2]) != SECRET_CHARS:
        return None
    key_id = f"key_{parts[1]}"
    return key_id if len(parts[1]) == RANDOM_CHARS and is_id(key_id, "key") else None


def verifier_of(text: str) -> str:
    """Returns the SHA-256 of a secret's text in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def matches_verifier(text: str, verifier: str) -> bool:
    """Returns whether a secret's text belongs to a verifier. Compares in constant time."""
    return hmac.compare_digest(verifier_of(text), verifier)
