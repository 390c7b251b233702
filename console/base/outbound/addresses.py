"""Which IP addresses a call may go to: those of the public internet, and no others.

The tables follow the IANA registries of special-purpose addresses for IPv4 and IPv6. They are
written here in full: what Python's `ipaddress` takes for global differs between its releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# What is refused of IPv4, with the reason.
REFUSED_IPV4 = {
    IPv4Network(network): reason
    for network, reason in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by customers of a provider",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local, with the metadata of most clouds",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "protocol assignments, with the metadata of one cloud",
        "192.0.2.0/24": "documentation",
        "192.88.99.0/24": "relays of 6to4",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "benchmarks",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved, and broadcast",
        # It looks public, and is the platform itself for every machine of one cloud.
        "168.63.129.16/32": "metadata of one cloud",
    }.items()
}
# All of IPv6 that is assigned to the public internet. What embeds an IPv4 address (mapped,
# compatible, NAT64), loopback, unique local, link-local and multicast addresses lie outside of it.
PUBLIC_IPV6 = IPv6Network("2000::/3")
# What is refused within that.
REFUSED_IPV6 = {
    IPv6Network(network): reason
    for network, reason in {
        "2001::/23": "protocol assignments, with Teredo and benchmarks",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4, which embeds an IPv4 address",
        "3fff::/20": "documentation",
    }.items()
}
LOOPBACK: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


def why_refused(address: Address, *, others: Sequence[Network] = ()) -> str:
    """Returns why an address is not called; an empty text where it may be.

    `others` are networks that are refused besides those that are not public.
    """
    if isinstance(address, IPv4Address):
        refused: dict[IPv4Network, str] | dict[IPv6Network, str] = REFUSED_IPV4
    elif address not in PUBLIC_IPV6:
        return "not assigned to the public internet"
    else:
        refused = REFUSED_IPV6
    for network, reason in refused.items():
        if address in network:
            return reason
    return "refused by this installation" if any(address in other for other in others) else ""


def is_loopback(address: Address) -> bool:
    """Returns whether an address is this machine itself."""
    return any(address in network for network in LOOPBACK)


def parse_address(text: str) -> Address | None:
    """Returns the address that a text is, in its one full form; None for anything else.

    IPv6 addresses with a zone (`%eth0`) are not taken: they name an interface of this machine.
    """
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Returns networks as `10.0.0.0/8` names them. Raises `ValueError`."""
    return tuple(ip_network(text) for text in texts)
