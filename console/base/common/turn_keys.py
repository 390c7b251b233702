"""Whose turn a request takes, which must be known before it is authenticated.

Authentication reads the database, and so has to wait for its turn like everything else. The key of
a turn is the organization whose request had the same credential before; for a credential that this
process does not know, it is the client's address. It decides about the order of requests alone.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, parse_cookie

from console.base.common.requests import client_address, network_of
from console.base.common.turns import ADDRESS

CREDENTIALS_MAX = 10_000
DIGEST_BYTES = 16


class TurnKeys:
    """Remembers the organizations of the credentials that were used last, by their digests."""

    def __init__(self, most: int = CREDENTIALS_MAX) -> None:
        self._most = most
        self._organizations: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def key_of(self, request: HttpRequest) -> str:
        """Returns the id of the request's organization, or `address:` with its network."""
        credential = _digest_of(request)
        with self._lock:
            organization_id = self._organizations.get(credential) if credential else None
        return organization_id or f"{ADDRESS}{network_of(client_address(request))}"

    def remember(self, request: HttpRequest, organization_id: str) -> None:
        """Notes the organization that a request was authenticated for."""
        credential = _digest_of(request)
        if not credential:
            return
        with self._lock:
            self._organizations[credential] = organization_id
            self._organizations.move_to_end(credential)
            while len(self._organizations) > self._most:
                self._organizations.popitem(last=False)

    def forget(self, request: HttpRequest) -> None:
        """Forgets a credential that did not authenticate its request."""
        with self._lock:
            self._organizations.pop(_digest_of(request), None)

    def organization_of(self, credential: str) -> str | None:
        """Returns the organization of a credential, as of `scope_credential`, if it is known."""
        return self._organizations.get(_digest(credential)) if credential else None


turn_keys = TurnKeys()


def scope_credential(scope: Mapping[str, Any]) -> str:
    """Returns the API key or session of a request of ASGI; empty where it has neither."""
    headers = dict(scope["headers"])
    authorization: bytes = headers.get(b"authorization", b"")
    if authorization:
        return authorization.decode("latin-1")
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
    return cookies.get(settings.SESSION_COOKIE_NAME, "")


def _digest_of(request: HttpRequest) -> bytes:
    """A digest of the request's API key or session; empty where it has neither."""
    credential = request.headers.get("Authorization") or request.COOKIES.get(
        settings.SESSION_COOKIE_NAME
    )
    if not credential:
        return b""
    return _digest(credential)


def _digest(credential: str) -> bytes:
    return hashlib.blake2b(credential.encode(errors="replace"), digest_size=DIGEST_BYTES).digest()
