"""How to reach the brokers of one cluster as the control plane's own user."""

from __future__ import annotations

from dataclasses import dataclass, field

SUPER_USER = "__freshet"
# Only for a broker's logs, because any client may choose this id. The meter leaves out our own
# traffic by its principal, which brokers authenticate, unless a request names who pays.
CLIENT_ID = "freshet-console"


@dataclass(frozen=True)
class Connection:
    """The address of a cluster's brokers and the user to log in as. Equal ones share a client.

    `bootstrap` is `host:port,…` of the brokers' internal listener, which no tenant can reach.
    `mechanism` must be SCRAM unless the broker runs on this machine, because the listener has no
    TLS.
    """

    bootstrap: str
    password: str = field(repr=False)
    username: str = SUPER_USER
    mechanism: str = "SCRAM-SHA-512"
