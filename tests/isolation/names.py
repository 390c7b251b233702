"""A DNS server over UDP and TCP, whose answers a test chooses."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Sequence

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

# Returns the addresses of a name: of either kind, for the nth question about a kind (from 0).
Zone = Callable[[str, int], Sequence[str]]
Reply = Callable[[bytes], bytes | None]


class NameServer:
    """Answers A and AAAA from `zone`; a name without addresses does not exist, unless `all_exist`.

    `questions` has each name and kind that was asked for. `broken` replaces the bytes of an answer
    over UDP: None is no answer. `truncated` answers over UDP that the answer is to be had over TCP.
    """

    def __init__(self, udp: socket.socket, tcp: socket.socket, zone: Zone) -> None:
        self.zone = zone
        self.questions: list[tuple[str, str]] = []
        self.over_tcp = 0
        self.all_exist = False
        self.truncated = False
        self.broken: Reply | None = None
        self._udp, self._tcp = udp, tcp
        self._threads = [
            threading.Thread(target=serve, daemon=True) for serve in (self._datagrams, self._stream)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stops it."""
        for server in (self._udp, self._tcp):
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        for thread in self._threads:
            thread.join()

    def _datagrams(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                question, client = self._udp.recvfrom(4096)
                if not question:  # it was shut down
                    return
                answer: bytes | None = self._answer(question, over_tcp=False)
                if self.broken is not None:
                    answer = self.broken(answer or b"")
                if answer is not None:
                    self._udp.sendto(answer, client)

    def _stream(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._tcp.accept()
                with connection:
                    (length,) = struct.unpack(">H", connection.recv(2, socket.MSG_WAITALL))
                    question = connection.recv(length, socket.MSG_WAITALL)
                    answer = self._answer(question, over_tcp=True)
                    self.over_tcp += 1
                    connection.sendall(struct.pack(">H", len(answer)) + answer)

    def _answer(self, wire: bytes, *, over_tcp: bool) -> bytes:
        query = dns.message.from_wire(wire)
        question = query.question[0]
        name, kind = question.name.to_text(), dns.rdatatype.to_text(question.rdtype)
        response = dns.message.make_response(query)
        if self.truncated and not over_tcp:
            response.flags |= dns.flags.TC
            return response.to_wire()
        asked = self.questions.count((name, kind))
        self.questions.append((name, kind))
        addresses = self.zone(name.removesuffix("."), asked)
        if not addresses and not self.all_exist:
            response.set_rcode(dns.rcode.NXDOMAIN)
        of_kind = [address for address in addresses if (":" in address) == (kind == "AAAA")]
        if of_kind:
            response.answer.append(dns.rrset.from_text(name, 0, "IN", kind, *of_kind))
        return response.to_wire(max_size=65535)


def make_sockets(address: str) -> tuple[socket.socket, socket.socket]:
    """Returns the sockets of a DNS server, UDP and TCP."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, 53))
    return udp, socket.create_server((address, 53))
