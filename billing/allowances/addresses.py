"""Which addresses are one, for the trial that a proved address gives once. Pure.

An address is compared in lower case, without what follows a plus in its local part, and without the
dots in the local part where the provider ignores them. A quoted local part is what its quotes hold
(RFC 5321, 4.1.2), and a name of other scripts is its ASCII form (RFC 5891). Plus tags are cut at
every provider: where one takes them as another mailbox, its people share one trial, which is the
lesser harm.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

import idna

# Providers that ignore dots in local parts, and the name of each that counts.
DOTS_IGNORED = {"gmail.com": "gmail.com", "googlemail.com": "gmail.com"}


def plain_address(address: str) -> str:
    """An address as it is compared. Raises `ValueError` for a text without a domain."""
    text = unicodedata.normalize("NFKC", address).strip().casefold()
    local, at, domain = text.rpartition("@")
    domain = domain.rstrip(".")
    if not at or not local or not domain:
        message = f"{address!r} is no address"
        raise ValueError(message)
    local, domain = _unquoted(local), _ascii_domain(domain)
    # Only from the second character on: a local part may begin with a plus.
    local = local[0] + local[1:].partition("+")[0]
    if domain in DOTS_IGNORED:
        domain = DOTS_IGNORED[domain]
        local = local.replace(".", "") or local
    return f"{local}@{domain}"


def _unquoted(local: str) -> str:
    """A local part without quotes and backslashes, which change nothing of the mailbox."""
    if len(local) > 2 and local[0] == local[-1] == '"':
        return re.sub(r"\\(.)", r"\1", local[1:-1])
    return local


def _ascii_domain(domain: str) -> str:
    """A domain in ASCII; as it is where it is no name, such as an address in brackets."""
    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return domain


def address_sha256(address: str) -> str:
    """The hash that is stored of an address, which stays when the person is erased."""
    return hashlib.sha256(plain_address(address).encode()).hexdigest()
