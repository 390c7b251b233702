"""The kernel's messages to a file system in user space, after `linux/fuse.h` (version 7.31)."""

from __future__ import annotations

import os
import struct

LOOKUP, FORGET, GETATTR, SETATTR = 1, 2, 3, 4
MKDIR, UNLINK, RMDIR, RENAME, LINK = 9, 10, 11, 12, 13
OPEN, READ, WRITE, STATFS, RELEASE = 14, 15, 16, 17, 18
FSYNC, FLUSH, INIT = 20, 25, 26
OPENDIR, READDIR, RELEASEDIR, FSYNCDIR = 27, 28, 29, 30
ACCESS, CREATE, INTERRUPT, BATCH_FORGET, RENAME2 = 34, 35, 36, 42, 45

ROOT_NODE = 1
VERSION = (7, 31)
WRITE_BYTES_MAX = 1 << 20
# The largest write with its head.
MESSAGE_BYTES_MAX = WRITE_BYTES_MAX + 8192
# The kernel keeps no pages of an open file.
DIRECT_IO = 1
# Larger messages than 128 KiB, exclusive creation passed on, flags of open passed on.
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
# What of a file is to be set.
SET_MODE, SET_SIZE = 1 << 0, 1 << 3

IN_HEADER = struct.Struct("<IIQQIIIHH")
OUT_HEADER = struct.Struct("<IiQ")
INIT_IN = struct.Struct("<IIII")
INIT_OUT = struct.Struct("<IIIIHHIIHHI28x")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
ENTRY = struct.Struct("<QQQQII")
ATTRIBUTES_VALID = struct.Struct("<QII")
OPENED = struct.Struct("<QIi")
OPEN_IN = struct.Struct("<II")
CREATE_IN = struct.Struct("<IIII")
MKDIR_IN = struct.Struct("<II")
NODE = struct.Struct("<Q")
INTERRUPT_IN = struct.Struct("<Q")
RENAME2_IN = struct.Struct("<QII")
TRANSFER_IN = struct.Struct("<QQIIQII")
WRITTEN = struct.Struct("<II")
HANDLE_IN = struct.Struct("<QII")
SETATTR_IN = struct.Struct("<IIQQQQQQIIIIIIII")
DIRECTORY_ENTRY = struct.Struct("<QQII")
STATISTICS = struct.Struct("<QQQQQIIII24x")

# Long enough that nothing is asked for again in a test.
FOR_EVER_S = 3600


def init_answer(body: bytes) -> bytes:
    """What the kernel learns of this file system."""
    _, _, readahead, offered = INIT_IN.unpack_from(body)
    flags = offered & (BIG_WRITES | MAX_PAGES)
    pages = WRITE_BYTES_MAX // 4096
    return INIT_OUT.pack(*VERSION, readahead, flags, 16, 12, WRITE_BYTES_MAX, 1, pages, 0, 0)


def attributes(facts: os.stat_result, node: int) -> bytes:
    """A file's attributes."""
    seconds = (int(facts.st_atime), int(facts.st_mtime), int(facts.st_ctime))
    rest = [at % 10**9 for at in (facts.st_atime_ns, facts.st_mtime_ns, facts.st_ctime_ns)]
    return ATTRIBUTES.pack(
        node,
        facts.st_size,
        facts.st_blocks,
        *seconds,
        *rest,
        facts.st_mode,
        facts.st_nlink,
        facts.st_uid,
        facts.st_gid,
        0,
        4096,
        0,
    )


def entry(facts: os.stat_result, node: int, valid_s: int) -> bytes:
    """A name's file, and how long the kernel may remember that."""
    return ENTRY.pack(node, 0, valid_s, 0, 0, 0) + attributes(facts, node)


def file_attributes(facts: os.stat_result, node: int) -> bytes:
    """A file's attributes by themselves."""
    return ATTRIBUTES_VALID.pack(0, 0, 0) + attributes(facts, node)


def directory_entry(name: str, number: int, kind: int) -> bytes:
    """One name of a folder; `number` is where the next one begins."""
    raw = name.encode()
    packed = DIRECTORY_ENTRY.pack(number, number, len(raw), kind) + raw
    return packed + bytes(-len(packed) % 8)


def statistics(facts: os.statvfs_result) -> bytes:
    """Of a file system: its size and what is left of it."""
    return STATISTICS.pack(
        facts.f_blocks,
        facts.f_bfree,
        facts.f_bavail,
        facts.f_files,
        facts.f_ffree,
        facts.f_bsize,
        facts.f_namemax,
        facts.f_frsize,
        0,
    )


def texts(body: bytes) -> list[str]:
    """Names at the end of a message, each with a zero behind it."""
    return [name.decode() for name in body.rstrip(b"\0").split(b"\0")]
