"""The records to look at in a user's first cluster. Pure."""

from __future__ import annotations

TOPIC = "hello-freshet"
RECORDS = (
    (b"hello", b'{"message": "Hello from Freshet", "number": 1}'),
    (b"hello", b'{"message": "This is a record in your first topic", "number": 2}'),
    (b"next", b'{"message": "Now produce one of your own", "number": 3}'),
)
