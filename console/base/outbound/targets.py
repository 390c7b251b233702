"""Reads an address that a tenant wrote, once: all later steps use the parts that are read here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

import idna

from console.base.outbound.addresses import Address, is_loopback, parse_address
from console.base.outbound.errors import AddressInvalid, AddressNotPublic

CHARS_MAX = 2048
PORTS = frozenset({443, 8443})
DEFAULT_PORTS = {"https": 443, "http": 80}
LOCALHOST = "localhost"
# Names with a meaning of their own (RFC 6761, 6762, 7686, 8375, 9476) or that clouds and Kubernetes
# use inside: they are not asked for, as their servers are inside.
SPECIAL_NAMES = frozenset({
    "alt", "arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain",
    LOCALHOST, "onion", "private", "test",
})  # fmt: skip
# What two parsers of addresses read differently: spaces, control characters, backslashes, halves of
# characters.
AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
# A host is read as an IPv4 address by other parsers if its last label is a number.
NUMBER = re.compile(r"(?:[0-9]+|0[xX][0-9a-fA-F]*)")
# What may stand in a path or query as it is; `%` is that of an escape.
KEPT = "%/:@!$&'()*+,;=~?"


@dataclass(frozen=True, slots=True)
class Target:
    """An address in parts. `host` is in ASCII, an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int
    # The path with the query, in ASCII; it begins with `/`.
    path: str
    # The host, where it is an IP address and not a name.
    literal: Address | None

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether the host is this machine by its name or address."""
        if self.literal is not None:
            return is_loopback(self.literal)
        return self.host == LOCALHOST


def parse_target(url: str, *, local: bool = False) -> Target:
    """Reads an address. With `local`, this machine may be called too, without TLS and on any port.

    Raises `AddressInvalid`, and `AddressNotPublic` for names that are not of the public internet.
    """
    if len(url) > CHARS_MAX:
        raise AddressInvalid(f"The address is longer than {CHARS_MAX} characters.")
    if AMBIGUOUS.search(url):
        raise AddressInvalid("The address has a space, a backslash or a character that is none.")
    parts, port = _split(url)
    if parts.scheme not in DEFAULT_PORTS:
        raise AddressInvalid("The address must begin with https://.")
    if "@" in parts.netloc:
        raise AddressInvalid(
            "The address has a user or password in it. Give what proves the caller in a header."
        )
    if "#" in url:
        raise AddressInvalid("The address has a fragment (#), which no host is ever sent.")
    host, literal = _read_host(parts)
    target = Target(
        scheme=parts.scheme,
        host=host,
        port=DEFAULT_PORTS[parts.scheme] if port is None else port,
        path=_path_of(parts),
        literal=literal,
    )
    if not (local and target.is_local):
        _check_public(target)
    return target


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError as error:
        raise AddressInvalid("The address has a host or a port that cannot be read.") from error


def _path_of(parts: SplitResult) -> str:
    query = f"?{parts.query}" if parts.query else ""
    return quote(f"{parts.path or '/'}{query}", safe=KEPT)


def _read_host(parts: SplitResult) -> tuple[str, Address | None]:
    """Returns the host in ASCII, and as an IP address where it is one. Raises `AddressInvalid`."""
    written = parts.hostname or ""
    if "[" in parts.netloc:
        literal = parse_address(written)
        if literal is None or literal.version != 6:
            raise AddressInvalid("The host in brackets is not an IPv6 address.")
        return str(literal), literal
    try:
        # UTS 46 is what browsers do: lower case, full-width forms and dots of other scripts.
        host = idna.encode(written, uts46=True, std3_rules=True).decode("ascii").removesuffix(".")
    except (idna.IDNAError, UnicodeError) as error:
        raise AddressInvalid("The host is not a valid name.") from error
    literal = parse_address(host)
    if literal is None and NUMBER.fullmatch(host.rpartition(".")[2]):
        raise AddressInvalid("The host is neither a name nor an IP address in its full form.")
    return host, literal


def _check_public(target: Target) -> None:
    if target.scheme != "https":
        raise AddressInvalid("The address must begin with https://.")
    if target.port not in PORTS:
        allowed = " or ".join(str(port) for port in sorted(PORTS))
        raise AddressInvalid(f"The port must be {allowed}.")
    if target.literal is not None:
        return
    labels = target.host.split(".")
    if len(labels) < 2 or labels[-1] in SPECIAL_NAMES:
        raise AddressNotPublic(
            f"{target.host} is not a name of the public internet. Use one that is."
        )
