"""Batches that are small as they are sent and very large once they are decompressed.

Each holds sound records whose values are zeros, so that a broker which reads them has to go through
all of it before it knows whether they are right. None is larger than 1 MiB.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import zstandard

from tests.bench.codec import NAMES
from tests.brokers import raw_batches

MIB = 2**20
BATCH_BYTES_MAX = MIB
# A length in a record has 31 bits.
RECORD_BYTES = 100 * MIB
GZIP_LEVEL, ZSTD_LEVEL = 9, 3


class _Compressor(Protocol):
    """Compresses piece by piece, so that 2 GiB are never in memory."""

    def compress(self, piece: bytes, /) -> bytes:
        """What can be written after this piece."""

    def flush(self) -> bytes:
        """What is left to write at the end."""


@dataclass(frozen=True)
class Bomb:
    """A batch of `mib` MiB of zeros under a codec."""

    codec: str
    mib: int

    @property
    def name(self) -> str:
        """Such as `zstd_2048_mib`."""
        return f"{self.codec}_{self.mib}_mib"

    def batch(self) -> bytes:
        """The batch. Raises `ValueError` if it has more than 1 MiB: the codec cannot do that."""
        sizes = _sizes(self.mib * MIB)
        payload = _COMPRESS[self.codec](_records(sizes))
        now_ms = time.time_ns() // 10**6
        batch = raw_batches.batch(
            payload, len(sizes), codec=NAMES.index(self.codec), base_timestamp=now_ms
        )
        if len(batch) > BATCH_BYTES_MAX:
            message = f"{self.name} has {len(batch)} bytes, more than {BATCH_BYTES_MAX}"
            raise ValueError(message)
        return batch


# What 1 MiB can hold. The most that a codec can shrink zeros is 21 to 1 with snappy, 255 to 1 with
# lz4, 1,030 to 1 with gzip: 2 GiB are possible with zstd alone, and snappy has no 100 MiB.
BOMBS = (
    Bomb("gzip", 100),
    Bomb("snappy", 20),
    Bomb("lz4", 100),
    Bomb("zstd", 100),
    Bomb("zstd", 2048),
)


def _sizes(total_bytes: int) -> list[int]:
    """How large the values of the records are."""
    full, rest = divmod(total_bytes, RECORD_BYTES)
    return [RECORD_BYTES] * full + [rest] * (rest > 0)


def _records(sizes: list[int]) -> Iterator[bytes]:
    for number, size in enumerate(sizes):
        body = raw_batches.record_body(bytes(size), number)
        yield raw_batches.write_varint(len(body)) + body


def _in_pieces(compressor: _Compressor, pieces: Iterator[bytes], begin: bytes = b"") -> bytes:
    compressed = [begin, *(bytes(compressor.compress(piece)) for piece in pieces)]
    return b"".join([*compressed, bytes(compressor.flush())])


def _lz4(pieces: Iterator[bytes]) -> bytes:
    compressor = lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=False
    )
    return _in_pieces(compressor, pieces, compressor.begin())


_COMPRESS: dict[str, Callable[[Iterator[bytes]], bytes]] = {
    "gzip": lambda pieces: _in_pieces(zlib.compressobj(GZIP_LEVEL, wbits=31), pieces),
    "snappy": lambda pieces: bytes(cramjam.snappy.compress_raw(b"".join(pieces))),
    "lz4": _lz4,
    "zstd": lambda pieces: _in_pieces(
        zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj(), pieces
    ),
}
