"""The shape of API keys, and how one is checked. Pure."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from console.base.common.ids import RANDOM_CHARS, is_id, random_text

PREFIX = "fk"
SECRET_CHARS = 32


@dataclass(frozen=True, slots=True)
class Secret:
    """A new key's secret text, to be shown once, and what is kept of it."""

    text: str
    verifier: str


def new_secret(key_id: str) -> Secret:
    """A secret for a key. The text names the key, so that it is found without a search."""
    text = f"{PREFIX}_{key_id.removeprefix('key_')}_{random_text(SECRET_CHARS)}"
    return Secret(text=text, verifier=verifier_of(text))


def key_id_of(text: str) -> str | None:
    """The id of the key that a text claims to be; None if it has not the shape of one."""
    parts = text.split("_")
    if len(parts) != 3 or parts[0] != PREFIX or len(parts[2]) != SECRET_CHARS:
        return None
    key_id = f"key_{parts[1]}"
    return key_id if len(parts[1]) == RANDOM_CHARS and is_id(key_id, "key") else None


def verifier_of(text: str) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def matches(text: str, verifier: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(verifier_of(text), verifier)
