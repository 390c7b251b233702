"""Tokens of invitations: made again for each mail, and stored by nobody. Pure but for the secret.

A token is a keyed digest of the invitation and its nonce, so a worker that sends the mail twice
sends the same one, and who reads the database can make none. What is stored is a digest of it.
"""

from __future__ import annotations

import base64
import hashlib

from django.utils.crypto import salted_hmac

SALT = "console.base.accounts.invitation"
TOKEN_CHARS = 52


def token_of(invitation_id: str, nonce: str) -> str:
    """The token of an invitation's present mail: 52 characters, 256 bits."""
    value = f"{invitation_id}:{nonce}"
    digest = salted_hmac(SALT, value, algorithm="sha256").digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()


def digest_of(token: str) -> str:
    """What is kept of a token: SHA-256 in hex."""
    return hashlib.sha256(token.encode()).hexdigest()
