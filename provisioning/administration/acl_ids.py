"""Ids of entries of an access control list. Pure.

An entry has no row in PostgreSQL, so its id is a digest of all of its fields: whoever computes it
gets the same id, whether the entry was made over REST or with Kafka's tools.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import astuple

from brokers.metadata_records import Acl
from console.base.common.ids import RANDOM_CHARS


def acl_id(entry: Acl) -> str:
    """`acl_` and 100 bits of the SHA-256 of the entry's fields, as lowercase base32."""
    # No field of a stored entry contains a NUL, so two different entries never join to one text.
    digest = hashlib.sha256("\0".join(astuple(entry)).encode()).digest()
    return f"acl_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"
