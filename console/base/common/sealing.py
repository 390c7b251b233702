"""Encrypts stored secrets, so that reading the database alone does not reveal them.

Encrypt-then-MAC, built from HMAC-SHA256 alone: the keystream is HMAC(key, nonce ‖ counter) (NIST SP
800-108 counter mode), and a tag covers nonce and ciphertext. Both keys are derived from Django's
secret key and the text that the caller gives as `key`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from django.conf import settings

NONCE_BYTES = 16
TAG_BYTES = 32


class SealBroken(Exception):
    """The sealed bytes were changed, or were sealed with another key."""


def digest(purpose: str, *parts: str | bytes) -> str:
    """Returns a digest of some parts in hex, keyed with our secret key.

    Without that key nobody can compute or check it. Digests of two purposes never match.
    """
    return _mac(_secret_key(), purpose.encode(), *parts).hex()


def seal(plain: bytes, key: str) -> bytes:
    """Encrypts bytes; returns nonce, ciphertext and tag in one."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    cipher = _xor_keystream(plain, _derive_key("seal", key), nonce)
    return nonce + cipher + _mac(_derive_key("tag", key), nonce, cipher)


def unseal(sealed: bytes, key: str) -> bytes:
    """Decrypts what `seal` returned for the same key. Raises `SealBroken`."""
    nonce, cipher = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:-TAG_BYTES]
    if not hmac.compare_digest(sealed[-TAG_BYTES:], _mac(_derive_key("tag", key), nonce, cipher)):
        raise SealBroken
    return _xor_keystream(cipher, _derive_key("seal", key), nonce)


def _secret_key() -> bytes:
    key = settings.SECRET_KEY
    return key.encode() if isinstance(key, str) else key


def _derive_key(purpose: str, key: str) -> bytes:
    return _mac(_secret_key(), purpose.encode(), key)


def _mac(key: bytes, *parts: str | bytes) -> bytes:
    """Returns the HMAC-SHA256 of some parts.

    Each part is preceded by its length, so that `ab`, `c` and `a`, `bc` have different MACs.
    """
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.digest()


def _xor_keystream(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Encrypts or decrypts: XORs bytes with the keystream of a key and a nonce."""
    blocks = -(-len(data) // hashlib.sha256().digest_size)
    stream = b"".join(_mac(key, nonce, block.to_bytes(8, "big")) for block in range(blocks))
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream[: len(data)], "big")
    return mixed.to_bytes(len(data), "big")
