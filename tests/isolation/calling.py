"""The internet as outbound calls meet it, in a network of its own: names, hosts, an authority."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from console.base.outbound.addresses import parse_networks
from console.base.outbound.calls import CallRules, fetch
from console.base.outbound.messages import Answer, Call
from tests.isolation.hosts import Host, Script, closing_all
from tests.isolation.names import NameServer, make_sockets
from tests.isolation.networks import OwnNetwork, own_network
from tests.kubernetes.pki import Authority

# Addresses that are public, and belong to nobody in this network.
PUBLIC, PUBLIC_TOO, PUBLIC_IPV6 = "11.22.33.44", "11.22.33.55", "2600:1::1"
METADATA, METADATA_IPV6, PRIVATE = "169.254.169.254", "fd00:ec2::254", "10.1.2.3"
ADDRESSES = [PUBLIC, PUBLIC_TOO, PUBLIC_IPV6, METADATA, METADATA_IPV6, PRIVATE]
RESOLVER = "127.0.0.1"
NAME, OTHER_NAME = "hooks.example.com", "other.example.com"
URL = f"https://{NAME}/"


class Internet:
    """Hosts and names that a test sets up, and calls to them by the rules of production."""

    def __init__(
        self, network: OwnNetwork, names: NameServer, authority: Authority, hosts: list[Host]
    ) -> None:
        self.names = names
        self.network = network
        self.authority = authority
        self._hosts = hosts
        self.rules = CallRules(authorities=authority.certificate("ca"))

    def resolve(self, *addresses: str) -> None:
        """Gives every name these addresses, and forgets what was asked before."""
        self.names.zone = lambda *_: addresses
        self.names.questions.clear()

    def serve(
        self,
        script: Script,
        address: str = PUBLIC,
        port: int = 443,
        *,
        certificate: str | None = "host",
        authority: Authority | None = None,
    ) -> Host:
        """Starts a host, with TLS unless there is no certificate."""
        tls = None
        if certificate is not None:
            signer = authority or self.authority
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(signer.certificate(certificate), signer.key(certificate))
        host = Host(self.listen(address, port), script, tls)
        self._hosts.append(host)
        return host

    def listen(self, address: str, port: int, backlog: int = 16) -> socket.socket:
        """Returns a socket that listens in this network."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return self.network.run(
            socket.create_server, (address, port), family=family, backlog=backlog
        )

    def call(
        self,
        url: str = URL,
        rules: CallRules | None = None,
        **call: Any,  # noqa: ANN401 (the fields of `Call`)
    ) -> Answer:
        """Makes a call from this network; raises the `CallError` that it ends with."""
        call.setdefault("timeout_s", 30.0)
        return self.network.run(fetch, Call(url, **call), rules or self.rules)


@contextlib.contextmanager
def internet(authority: Authority, addresses: Sequence[str] = ADDRESSES) -> Iterator[Internet]:
    """Makes a network with a DNS server, in which every name has the address `PUBLIC`."""
    with own_network(addresses, RESOLVER) as network, closing_all() as hosts:
        names = NameServer(*network.run(make_sockets, RESOLVER), lambda *_: (PUBLIC,))
        try:
            yield Internet(network, names, authority, hosts)
        finally:
            names.close()


def make_authority(folder: Path) -> Authority:
    """Makes an authority with a certificate for hosts of each kind that the tests have."""
    authority = Authority(folder)
    names = (NAME, OTHER_NAME, "xn--bcher-kva.example.com", "localhost")
    literals = (PUBLIC, PUBLIC_IPV6, "127.0.0.1")
    entries = (*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in literals))
    authority.issue("host", "/CN=host", usage="serverAuth", names=entries)
    authority.issue("of-another", "/CN=other", usage="serverAuth", names=("DNS:else.example.com",))
    authority.issue("named-by-subject", f"/CN={NAME}", usage="serverAuth")
    authority.issue("of-clients", "/CN=client", usage="clientAuth", names=(f"DNS:{NAME}",))
    return authority


REFUSED_NETWORKS = parse_networks([f"{PUBLIC_TOO}/32"])
