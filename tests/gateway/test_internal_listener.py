"""The internal listener of a managed broker: for the service itself, and for no tenant."""

import pytest

from brokers.secrets import SUPER_USER, super_password
from tests.gateway.cells import PASSWORD, USER, GatewayServer, KeeperStandIn
from tests.gateway.raw import Raw, Refused

INVALID = "Authentication failed: Invalid username or password"


@pytest.fixture
def managed(cell):
    """A cluster that runs, with the listener that the keeper's plan gives its brokers."""
    spec = cell.add_cluster("cl_managed")
    secret = super_password(cell.secret, spec.id)
    keeper = KeeperStandIn(
        cell,
        spec,
        listener={"sasl": ["PLAIN", "SCRAM-SHA-512"], "super_users_only": True},
        security={
            "super_users": [f"User:{SUPER_USER}"],
            "users": [{"name": SUPER_USER, "password": secret}],
        },
    )
    with keeper, GatewayServer(cell):
        yield cell, spec, keeper, secret


def log_in(bootstrap, user, password):
    client = Raw.plain(int(bootstrap.rpartition(":")[2]))
    client.log_in(user, password)
    assert client.metadata()


def test_only_the_service_can_log_in_on_the_internal_listener(managed):
    cell, spec, keeper, secret = managed
    through_gateway = Raw.plain(spec.ports[0])
    through_gateway.log_in(USER, PASSWORD)
    keeper.wait_for_start(1)
    assert through_gateway.metadata(), "a tenant's credential works through the gateway"
    internal = keeper.broker.bootstrap
    log_in(internal, SUPER_USER, secret)
    cell.add_user(spec.id, "granted", PASSWORD)
    for user, password in [
        (USER, PASSWORD),
        ("granted", PASSWORD),
        ("nobody", PASSWORD),
        (SUPER_USER, PASSWORD),
    ]:
        with pytest.raises(Refused, match=f"^{INVALID}$"):
            log_in(internal, user, password)
    log_in(f"127.0.0.1:{spec.ports[0]}", "granted", PASSWORD)
