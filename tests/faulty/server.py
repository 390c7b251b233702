"""Serves one mount until its standard input ends: `python -m tests.faulty.server MOUNT FOLDER`.

Each line of the standard input is a `Faults`, in force once a line has come back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import selectors
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.faulty import wire
from tests.faulty.backing import Backing
from tests.faulty.faults import REMEMBERS_NAMES, Faults

MS_NOSUID, MS_NODEV = 2, 4
MNT_DETACH = 2

Answer = bytes | None
# What is done for one message: the kernel's number of the file, and the message behind its head.
Operation = Callable[[int, bytes], Answer]


class HangError(Exception):
    """The operation is not to end yet."""


class Server:
    """Answers the kernel, one message after another."""

    def __init__(self, device: int, backing: Backing) -> None:
        self._device = device
        self._backing = backing
        self._faults = Faults()
        self._never = threading.Event()
        # Names that were looked for in vain, where that is remembered.
        self._absent: set[Path] = set()
        # Messages that wait for other faults, by their numbers.
        self._hanging: dict[int, bytes] = {}
        self._operations: dict[int, Operation] = {
            wire.INIT: lambda _node, body: wire.init_answer(body),
            wire.LOOKUP: self._lookup,
            wire.GETATTR: lambda node, _body: self._attributes(node),
            wire.SETATTR: self._set_attributes,
            wire.MKDIR: self._make_folder,
            wire.UNLINK: self._unlink,
            wire.RMDIR: self._remove_folder,
            wire.RENAME: lambda node, body: self._rename(node, body, wire.NODE),
            wire.RENAME2: lambda node, body: self._rename(node, body, wire.RENAME2_IN),
            wire.LINK: self._link,
            wire.CREATE: self._create,
            wire.OPEN: self._open,
            wire.READ: self._read,
            wire.WRITE: self._write,
            wire.FSYNC: self._sync,
            wire.FSYNCDIR: lambda node, _body: self._go_wrong("fsyncdir", node),
            wire.FLUSH: lambda _node, _body: b"",
            wire.RELEASE: self._release,
            wire.OPENDIR: self._open_folder,
            wire.READDIR: self._list,
            wire.RELEASEDIR: self._release,
            wire.STATFS: lambda node, _body: wire.statistics(os.statvfs(backing.path(node))),
        }

    def serve(self) -> None:
        """Answers until the standard input ends, or the mount does."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._device, selectors.EVENT_READ)
            selector.register(0, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == 0:
                        if not self._take_faults():
                            return
                    elif not self._take_message():
                        return

    def _take_faults(self) -> bool:
        line = sys.stdin.buffer.readline()
        if not line:
            return False
        self._faults = Faults.from_line(line)
        self._backing.lies = frozenset(self._faults.lies)
        waiting, self._hanging = self._hanging, {}
        for message in waiting.values():
            self._answer(message)
        say("in force")
        return True

    def _take_message(self) -> bool:
        try:
            message = os.read(self._device, wire.MESSAGE_BYTES_MAX)
        except OSError as error:
            # A request that was withdrawn meanwhile; the end of the mount.
            return error.errno in {errno.EINTR, errno.EAGAIN, errno.ENOENT}
        _, code, *_ = wire.IN_HEADER.unpack_from(message)
        if code == wire.INTERRUPT:
            self._interrupt(message)
            return True
        return code in {wire.FORGET, wire.BATCH_FORGET} or self._answer(message)

    def _interrupt(self, message: bytes) -> None:
        """Ends what hangs: the kernel does not let a process go before that."""
        (number,) = wire.INTERRUPT_IN.unpack_from(message, wire.IN_HEADER.size)
        if self._hanging.pop(number, None) is not None:
            self._reply(number, -errno.EINTR, b"")

    def _answer(self, message: bytes) -> bool:
        """Does what a message asks for. Returns whether the mount is still there."""
        _, code, unique, node, *_ = wire.IN_HEADER.unpack_from(message)
        number, answer = 0, b""
        operation = self._operations.get(code)
        if operation is None:
            number = errno.ENOSYS
        else:
            try:
                answer = operation(node, message[wire.IN_HEADER.size :]) or b""
            except HangError:
                self._hanging[unique] = message
                return True
            except OSError as error:
                number = error.errno or errno.EIO
        return self._reply(unique, -number, answer)

    def _reply(self, unique: int, status: int, answer: bytes) -> bool:
        head = wire.OUT_HEADER.pack(wire.OUT_HEADER.size + len(answer), status, unique)
        try:
            os.write(self._device, head + answer)
        except OSError as error:
            return error.errno == errno.ENOENT
        return True

    def _go_wrong(self, operation: str, node: int, name: str = "") -> None:
        path = self._backing.path(node, name).relative_to(self._backing.root)
        if self._faults.does_hang(operation, path):
            raise HangError
        delay_s = self._faults.delay_s(operation, path)
        if delay_s:
            self._never.wait(delay_s)
        number = self._faults.error(operation, path)
        if number:
            raise OSError(number, os.strerror(number))

    @property
    def _valid_s(self) -> int:
        return wire.FOR_EVER_S if REMEMBERS_NAMES in self._faults.lies else 0

    def _entry(self, path: Path) -> bytes:
        self._absent.discard(path)
        return wire.entry(path.lstat(), self._backing.node(path), self._valid_s)

    def _lookup(self, node: int, body: bytes) -> Answer:
        [name] = wire.texts(body)
        self._go_wrong("lookup", node, name)
        path = self._backing.path(node, name)
        remembers = REMEMBERS_NAMES in self._faults.lies
        if remembers and path in self._absent:
            # The kernel asks again before it makes a name.
            raise FileNotFoundError(errno.ENOENT, "as before")
        try:
            return self._entry(path)
        except FileNotFoundError:
            if remembers:
                self._absent.add(path)
            raise

    def _attributes(self, node: int) -> bytes:
        return wire.file_attributes(self._backing.facts(node), node)

    def _set_attributes(self, node: int, body: bytes) -> Answer:
        valid, _, _, size, *rest = wire.SETATTR_IN.unpack_from(body)
        mode = rest[7]
        return wire.file_attributes(self._backing.set_facts(node, valid, size, mode), node)

    def _make_folder(self, node: int, body: bytes) -> Answer:
        mode, _ = wire.MKDIR_IN.unpack_from(body)
        [name] = wire.texts(body[wire.MKDIR_IN.size :])
        self._go_wrong("mkdir", node, name)
        self._backing.make_folder(self._backing.path(node, name), mode)
        return self._entry(self._backing.path(node, name))

    def _unlink(self, node: int, body: bytes) -> Answer:
        [name] = wire.texts(body)
        self._go_wrong("unlink", node, name)
        self._backing.remove(self._backing.path(node, name))
        return b""

    def _remove_folder(self, node: int, body: bytes) -> Answer:
        [name] = wire.texts(body)
        self._go_wrong("rmdir", node, name)
        self._backing.remove_folder(self._backing.path(node, name))
        return b""

    def _rename(self, node: int, body: bytes, head: struct.Struct) -> Answer:
        folder = head.unpack_from(body)[0]
        old, new = wire.texts(body[head.size :])
        self._go_wrong("rename", node, old)
        self._backing.rename(self._backing.path(node, old), self._backing.path(folder, new))
        return b""

    def _link(self, node: int, body: bytes) -> Answer:
        (linked,) = wire.NODE.unpack_from(body)
        [name] = wire.texts(body[wire.NODE.size :])
        self._go_wrong("link", node, name)
        path = self._backing.path(node, name)
        self._backing.link(linked, path)
        return self._entry(path)

    def _create(self, node: int, body: bytes) -> Answer:
        flags, mode, _, _ = wire.CREATE_IN.unpack_from(body)
        [name] = wire.texts(body[wire.CREATE_IN.size :])
        self._go_wrong("create", node, name)
        path = self._backing.path(node, name)
        handle = self._backing.create(path, flags, mode)
        return self._entry(path) + wire.OPENED.pack(handle, wire.DIRECT_IO, 0)

    def _open(self, node: int, body: bytes) -> Answer:
        flags, _ = wire.OPEN_IN.unpack_from(body)
        self._go_wrong("open", node)
        return wire.OPENED.pack(self._backing.open(node, flags), wire.DIRECT_IO, 0)

    def _open_folder(self, node: int, body: bytes) -> Answer:
        return wire.OPENED.pack(self._backing.open_folder(node), 0, 0)

    def _read(self, node: int, body: bytes) -> Answer:
        handle, position, length, *_ = wire.TRANSFER_IN.unpack_from(body)
        self._go_wrong("read", node)
        return self._backing.file(handle).read(position, length)

    def _write(self, node: int, body: bytes) -> Answer:
        handle, position, length, *_ = wire.TRANSFER_IN.unpack_from(body)
        self._go_wrong("write", node)
        written = body[wire.TRANSFER_IN.size :][:length]
        done = os.pwrite(self._backing.file(handle).descriptor, written, position)
        return wire.WRITTEN.pack(done, 0)

    def _sync(self, node: int, body: bytes) -> Answer:
        handle, *_ = wire.HANDLE_IN.unpack_from(body)
        self._go_wrong("fsync", node)
        os.fsync(self._backing.file(handle).descriptor)
        return b""

    def _release(self, _node: int, body: bytes) -> Answer:
        handle, *_ = wire.HANDLE_IN.unpack_from(body)
        self._backing.close(handle)
        return b""

    def _list(self, node: int, body: bytes) -> Answer:
        _, position, length, *_ = wire.TRANSFER_IN.unpack_from(body)
        self._go_wrong("list", node)
        listed = b""
        names = sorted(os.scandir(self._backing.path(node)), key=lambda entry: entry.name)
        for number, entry in enumerate(names[position:], start=position + 1):
            kind = 4 if entry.is_dir(follow_symlinks=False) else 8
            packed = wire.directory_entry(entry.name, number, kind)
            if len(listed) + len(packed) > length:
                break
            listed += packed
        return listed


def say(text: str) -> None:
    """One line for whoever started the server."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def check(status: int) -> None:
    """Raises what a call of the C library left behind."""
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(mount: str, folder: str) -> None:
    """Mounts, serves, and unmounts."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    flags = MS_NOSUID | MS_NODEV
    check(libc.mount(b"faulty", mount.encode(), b"fuse.faulty", flags, options.encode()))
    say("mounted")
    try:
        Server(device, Backing(Path(folder))).serve()
    finally:
        libc.umount2(mount.encode(), MNT_DETACH)


if __name__ == "__main__":
    main(*sys.argv[1:])
