"""Lists of allowed networks: read from texts, and asked whether they hold an address. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

NETWORKS_MAX = 100

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NetworkInvalid(ValueError):
    """A text is no network. The message says what is wrong with it."""


def read_network(text: str) -> str:
    """A network in CIDR notation as it is kept; a single address is a network of one.

    Raises `NetworkInvalid`, for bits behind the prefix too: `10.1.2.3/8` may mean either of two.
    """
    try:
        return str(ipaddress.ip_network(text.strip()))
    except ValueError as error:
        message = f"{text!r} is no network: {error}."
        raise NetworkInvalid(message) from error


def is_allowed(networks: Iterable[str], address: str) -> bool:
    """Tells whether an address lies in one of the networks; without any, every one does.

    IPv4 addresses within IPv6 (`::ffff:192.0.2.1`) are those of IPv4. What is no address, such as
    that of a caller whose address is not known, lies nowhere.
    """
    known = list(networks)
    if not known:
        return True
    try:
        parsed: Address = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in ipaddress.ip_network(each) for each in known)
