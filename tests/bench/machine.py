"""The limits of the machine, measured in the run that they are compared with."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.bench.report import progress

MIB = 1024 * 1024
LOOPBACK_BYTES = 1024 * MIB
WRITE_BYTES = 256 * MIB
SYNCS = 400
COLD_BYTES = 1024 * MIB
COLD_READ_BYTES = 8 * MIB


def limits(folder: Path, generator_cpu: str, broker_cpu: str) -> dict[str, Any]:
    """Loopback rate, sequential synced write rate, and latency of `fdatasync` in a folder."""
    progress("measuring the machine's limits")
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "cpus": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "loopback_mib_per_s": round(_loopback(int(generator_cpu), int(broker_cpu))),
        "synced_write_mib_per_s": round(_synced_write(folder)),
        **sync_latency(folder),
    }


def _loopback(sender_cpu: int, receiver_cpu: int) -> float:
    """MiB/s of one TCP connection between two CPUs. Both calls run outside the interpreter lock."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_send_bytes, args=(server.getsockname(), sender_cpu))
        thread.start()
        connection, _ = server.accept()
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {receiver_cpu})
        buffer = bytearray(MIB)
        left = LOOPBACK_BYTES
        began = time.perf_counter()
        with connection:
            while left > 0:
                left -= connection.recv_into(buffer)
        seconds = time.perf_counter() - began
        os.sched_setaffinity(0, before)
        thread.join()
    return LOOPBACK_BYTES / MIB / seconds


def _send_bytes(address: tuple[str, int], cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    piece = bytes(MIB)
    with socket.create_connection(address) as connection:
        for _ in range(LOOPBACK_BYTES // MIB):
            connection.sendall(piece)


def _synced_write(folder: Path) -> float:
    """MiB/s of appending 1 MiB at a time, each synced before the next."""
    piece = os.urandom(MIB)
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for _ in range(WRITE_BYTES // MIB):
            os.write(file.fileno(), piece)
            os.fdatasync(file.fileno())
        seconds = time.perf_counter() - began
    return WRITE_BYTES / MIB / seconds


def sync_latency(folder: Path, syncs: int = SYNCS) -> dict[str, float]:
    """Milliseconds of `fdatasync` after writing 4 KiB over zeros that are on disk already."""
    piece = os.urandom(4096)
    samples = []
    with tempfile.TemporaryFile(dir=folder) as file:
        os.write(file.fileno(), bytes(4096 * syncs))
        os.fsync(file.fileno())
        for number in range(syncs):
            os.pwrite(file.fileno(), piece, 4096 * number)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            samples.append(1000 * (time.perf_counter() - began))
    samples.sort()
    return {
        "fdatasync_p50_ms": round(samples[syncs // 2], 3),
        "fdatasync_p99_ms": round(samples[syncs * 99 // 100], 3),
    }


def cold_read_mib_per_s(folder: Path) -> float:
    """MiB/s of reading a file of 1 GiB past the page cache, 8 MiB at a time, one after another."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cold-read"
    try:
        with path.open("wb") as file:
            for _ in range(COLD_BYTES // MIB):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        # Direct reads want aligned memory, which a mapping has.
        with mmap.mmap(-1, COLD_READ_BYTES) as buffer:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                began = time.perf_counter()
                while os.readv(descriptor, [buffer]):
                    continue
                seconds = time.perf_counter() - began
            finally:
                os.close(descriptor)
    finally:
        path.unlink(missing_ok=True)
    return COLD_BYTES / MIB / seconds


def drop_from_page_cache(folder: Path) -> None:
    """Drops every file below a folder from the page cache: the next read comes from the disk."""
    for path in sorted(folder.rglob("*")):
        # Brokers may delete files meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
