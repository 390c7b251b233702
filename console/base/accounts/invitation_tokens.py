"""Tokens of invitations: derived anew for each mail, and never stored. Pure but for the secret key.

A token is a digest of the invitation's id and nonce, keyed with Django's secret key. So a worker
that sends the mail twice sends the same token, and somebody who reads only the database can make
none. The database has a digest of the token, to find its invitation.
"""

from __future__ import annotations

import base64
import hashlib

from django.utils.crypto import salted_hmac

SALT = "console.base.accounts.invitation"
TOKEN_CHARS = 52


def token_of(invitation_id: str, nonce: str) -> str:
    """Returns the token for an invitation's current nonce: 52 characters of base32, 256 bits."""
    value = f"{invitation_id}:{nonce}"
    digest = salted_hmac(SALT, value, algorithm="sha256").digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()


def digest_of(token: str) -> str:
    """Returns the SHA-256 of a token in hex, by which its invitation is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
