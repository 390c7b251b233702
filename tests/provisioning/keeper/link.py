"""A minimal gateway's end of the link to a broker, to be a client connection that is counted."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json

NONCE_BYTES = 32
HELLO = b"FRLK\x00\x01"


class Linked:
    """A client connection that came through a gateway."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def close(self) -> None:
        """Closes the connection."""
        self._writer.close()
        await self._writer.wait_closed()


async def connect(address: str, link_secret: str) -> Linked:
    """Connects to a broker's link listener, and authenticates as a gateway."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    hello = await reader.readexactly(len(HELLO) + NONCE_BYTES)
    assert hello.startswith(HELLO)
    preamble = json.dumps(
        {
            "v": 1,
            "principal": "User:alice",
            "listener": "SASL_PLAINTEXT",
            "client_address": "127.0.0.1:1",
            # The address of each slot.
            "advertised": ["127.0.0.1:9"] * 3,
            "gateway_nonce": "00" * NONCE_BYTES,
        }
    ).encode()
    key = bytes.fromhex(link_secret)
    proof = hmac.new(key, b"gateway" + hello + preamble, hashlib.sha256).digest()
    writer.write(len(preamble).to_bytes(4, "big") + preamble + proof)
    await writer.drain()
    assert len(await reader.readexactly(hashlib.sha256().digest_size)) == len(proof)
    return Linked(writer)
