"""Keeps a stored answer unreadable to who has the database but not the caller's own key.

Encrypt-then-MAC out of HMAC-SHA256 alone: a keystream of HMAC(key, nonce ‖ counter), and a tag over
nonce and ciphertext (NIST SP 800-108 counter mode; the key is derived anew for each caller's key).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from django.conf import settings

NONCE_BYTES = 16
TAG_BYTES = 32


class SealBroken(Exception):
    """The text was changed, or sealed with another key."""


def digest(purpose: str, *parts: str | bytes) -> str:
    """A keyed digest in hex of some parts: it tells nothing to who lacks our secret key."""
    return _mac(_secret_key(), purpose.encode(), *parts).hex()


def seal(plain: bytes, key: str) -> bytes:
    """Encrypts with a key that need not be stored."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    cipher = _xor(plain, _derive("seal", key), nonce)
    return nonce + cipher + _mac(_derive("tag", key), nonce, cipher)


def unseal(sealed: bytes, key: str) -> bytes:
    """The inverse of `seal`. Raises `SealBroken`."""
    nonce, cipher = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:-TAG_BYTES]
    if not hmac.compare_digest(sealed[-TAG_BYTES:], _mac(_derive("tag", key), nonce, cipher)):
        raise SealBroken
    return _xor(cipher, _derive("seal", key), nonce)


def _secret_key() -> bytes:
    key = settings.SECRET_KEY
    return key.encode() if isinstance(key, str) else key


def _derive(purpose: str, key: str) -> bytes:
    return _mac(_secret_key(), purpose.encode(), key)


def _mac(key: bytes, *parts: str | bytes) -> bytes:
    """HMAC-SHA256 over parts, each with its length before it so that none runs into the next."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.digest()


def _xor(data: bytes, key: bytes, nonce: bytes) -> bytes:
    blocks = -(-len(data) // hashlib.sha256().digest_size)
    stream = b"".join(_mac(key, nonce, block.to_bytes(8, "big")) for block in range(blocks))
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream[: len(data)], "big")
    return mixed.to_bytes(len(data), "big")
