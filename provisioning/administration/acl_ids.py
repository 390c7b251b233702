"""Ids of entries of an access control list. Pure.

An entry has no row: its identity is all of it. So its id is made of all of it, and is the same
wherever and however often it is looked at, however it came to be there.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import astuple

from brokers.metadata_records import Acl
from console.base.common.ids import RANDOM_CHARS


def acl_id(entry: Acl) -> str:
    """`acl_` and 100 bits of the SHA-256 of the entry's fields, as lowercase base32."""
    # No field of a stored entry has a NUL: two entries never give the same text.
    digest = hashlib.sha256("\0".join(astuple(entry)).encode()).digest()
    return f"acl_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"
