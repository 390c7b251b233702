"""Lists of allowed networks: parsed from texts, and matched against an address. Pure functions."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

NETWORKS_MAX = 100

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NetworkInvalid(ValueError):
    """A text does not name a network. The message says what is wrong with it."""


def read_network(text: str) -> str:
    """Returns a network's canonical CIDR notation; a single address is a network of one.

    Raises `NetworkInvalid`. A text with bits set behind the prefix is invalid too: `10.1.2.3/8` may
    mean that host or the whole of `10.0.0.0/8`.
    """
    try:
        return str(ipaddress.ip_network(text.strip()))
    except ValueError as error:
        message = f"{text!r} is not a network: {error}."
        raise NetworkInvalid(message) from error


def is_allowed(networks: Iterable[str], address: str) -> bool:
    """Returns whether an address lies in one of the networks; an empty list allows every address.

    An IPv4 address within IPv6 (`::ffff:192.0.2.1`) counts as the IPv4 address. A text that is no
    address, such as `unknown` for a caller whose address is not known, lies in no network.
    """
    allowed = [ipaddress.ip_network(network) for network in networks]
    if not allowed:
        return True
    try:
        parsed: Address = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in network for network in allowed)
