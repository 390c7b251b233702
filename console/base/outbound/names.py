"""Asks for the addresses of a name: once in a call, within the call's time.

`dnspython` asks the system's DNS servers itself, because the C library has no limit of time, would
try the name within the service's own domains (`search` of `resolv.conf`), and looks into files.
"""

from __future__ import annotations

from ipaddress import ip_address

import dns.exception
import dns.name
import dns.rdatatype
import dns.resolver

from console.base.outbound.addresses import Address
from console.base.outbound.deadlines import Deadline
from console.base.outbound.errors import NameUnresolved

# A name with more addresses than that is not read further: all of them would have to be judged.
ADDRESSES_MAX = 32
DOING = "while it asked for the addresses of the name"


class AddressBook:
    """Finds addresses by the DNS servers of this machine (`/etc/resolv.conf`)."""

    def addresses_of(self, name: str, deadline: Deadline) -> list[Address]:
        """Returns all IPv4 and IPv6 addresses of a name; none if it does not exist.

        One of the two kinds may fail as long as the other has addresses. Raises `NameUnresolved`
        if no server answers, and `CallTimedOut`.
        """
        resolver = self._resolver()
        absolute = dns.name.from_text(name)
        addresses: list[Address] = []
        failure: Exception | None = None
        for kind in (dns.rdatatype.A, dns.rdatatype.AAAA):
            try:
                answer = resolver.resolve(
                    absolute,
                    kind,
                    search=False,
                    raise_on_no_answer=False,
                    lifetime=deadline.left_s(DOING),
                )
            except dns.resolver.NXDOMAIN:
                return []
            except dns.resolver.LifetimeTimeout as error:
                raise deadline.passed(DOING) from error
            except (dns.exception.DNSException, OSError) as error:
                failure = error
                continue
            addresses += [ip_address(record.address) for record in answer.rrset or ()]
        if len(addresses) > ADDRESSES_MAX:
            raise NameUnresolved(f"{name} has more than {ADDRESSES_MAX} addresses.")
        if failure is not None and not addresses:
            raise NameUnresolved(
                f"The DNS servers of {name} did not answer, or not correctly. Check them, and try"
                " again."
            ) from failure
        return addresses

    def _resolver(self) -> dns.resolver.Resolver:
        # The file is read for every call, as it may change.
        try:
            return dns.resolver.Resolver()
        except dns.resolver.NoResolverConfiguration as error:
            raise NameUnresolved("The service cannot ask for names. Try again later.") from error
