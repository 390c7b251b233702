"""Damages a batch in a lane of a broker that does not run, as an earlier release would have it.

Brokers refuse such a batch, and notice every other change of what they stored: so the checksums of
the batch and of its block are made anew.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import CRC_COVERS_FROM, HEADER_BYTES
from tests.brokers.lanes import (
    ALIGNMENT,
    BLOCK_BYTES,
    BLOCK_CRC_AT,
    DATA,
    Block,
    PartitionId,
    block_at,
    data_entries,
)

JUNK = b"neither records nor what any codec makes of them "
BATCH_CRC_AT = 17


def damage_batch(lanes: Path, partition: PartitionId, base_offset: int) -> None:
    """Writes junk in place of a batch's records. Raises `LookupError` where no lane has it."""
    for path in sorted(lanes.glob("*/*.wal")):
        raw = bytearray(path.read_bytes())
        for position in range(0, len(raw), ALIGNMENT):
            block = block_at(bytes(raw), position, str(path))
            if block is None or block.kind != DATA:
                continue
            for entry in data_entries(block.index, block.version):
                if (entry.partition, entry.base_offset) == (partition, base_offset):
                    batch_at = position + BLOCK_BYTES + len(block.index) + entry.position
                    _write_junk(raw, batch_at, batch_at + entry.length)
                    _sign_block(raw, position, block)
                    path.write_bytes(raw)
                    return
    message = f"no lane has a batch of {partition} at offset {base_offset}"
    raise LookupError(message)


def _write_junk(raw: bytearray, start: int, end: int) -> None:
    records = start + HEADER_BYTES
    raw[records:end] = bytes(itertools.islice(itertools.cycle(JUNK), end - records))
    checksum = calc_crc32c(bytes(raw[start + CRC_COVERS_FROM : end]))
    struct.pack_into(">I", raw, start + BATCH_CRC_AT, checksum)


def _sign_block(raw: bytearray, position: int, block: Block) -> None:
    crc_at = position + BLOCK_CRC_AT
    raw[crc_at : crc_at + 4] = bytes(4)
    end = position + BLOCK_BYTES + len(block.index) + len(block.payload)
    struct.pack_into("<I", raw, crc_at, calc_crc32c(bytes(raw[position:end])))
