"""Clients that attack a gateway without a password, and how long another tenant's login takes.

Without the shares each of these kept the victim waiting for as long as the attackers had time, that
is 10 s, or kept it out.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import struct
import threading
import time

import pytest

from tests.gateway.cells import DOMAIN, PASSWORD, USER, Cell, GatewayServer, KeeperStandIn, until
from tests.gateway.raw import LIMIT_S, Raw, Refused, metric
from tests.isolation.networks import own_network

# A login takes some milliseconds. This leaves room for a machine that has more to do.
LOGIN_S_MAX = 2.0
# Beside guesses at its own passwords: within the time that gateways give a login.
ATTACKED_LOGIN_S_MAX = 10.0
LOGINS = 10
UNAUTHENTICATED = "freshet_gateway_unauthenticated_connections"
PLACES, SHARE = 1000, 125
HALF_MIB = 512 << 10

# The network of the tests with addresses: the gateway, an attacker with a /64, an honest client.
GATEWAY = "2001:db8:0:1::1"
ATTACKERS = [f"2001:db8:0:2::{number:x}" for number in range(1, 41)]
NEIGHBOUR = "2001:db8:0:2:ffff::1"
VICTIM = "2001:db8:0:3::1"


@pytest.fixture
def tenants(cell):
    """The specs of an attacked cluster and of a victim's, and the gateway of both."""
    attacked, victim = cell.add_cluster("cl_attacked"), cell.add_cluster("cl_victim")
    with GatewayServer(cell, wake={"hold_ms": 300}) as gateway:
        yield attacked, victim, gateway


@pytest.fixture
def cell(tmp_path):
    """A cell of its own."""
    return Cell(tmp_path / "cell")


def login_times(connect, password=PASSWORD):
    """How long each of some logins takes, in seconds, from connecting to the last answer."""
    times = []
    for _ in range(LOGINS):
        began = time.monotonic()
        client = connect()
        client.log_in(USER, password)
        times.append(time.monotonic() - began)
        client.close()
    return times


def at_port(spec):
    return lambda: Raw.plain(spec.ports[0])


def announce(client, length):
    client.socket.sendall(struct.pack(">i", length))


def test_announced_lengths_delay_no_login(tenants):
    attacked, victim, gateway = tenants
    hostile = [Raw.plain(attacked.ports[0]) for _ in range(256)]
    for client in hostile:
        announce(client, HALF_MIB)
    until(lambda: metric(gateway.ready["metrics"], UNAUTHENTICATED) == len(hostile), "all are in")
    assert max(login_times(at_port(victim))) < LOGIN_S_MAX
    assert max(login_times(at_port(attacked))) < LOGIN_S_MAX


def test_requests_that_never_end_delay_no_login(tenants):
    attacked, victim, gateway = tenants
    refused = 'freshet_gateway_refusals_total{reason="memory"}'
    hostile = [Raw.plain(attacked.ports[0]) for _ in range(64)]
    for client in hostile:
        announce(client, HALF_MIB)
        with contextlib.suppress(ConnectionError):
            client.socket.sendall(bytes(HALF_MIB - 1))
    until(lambda: metric(gateway.ready["metrics"], refused) > 0, "some get no more memory")
    assert max(login_times(at_port(victim))) < LOGIN_S_MAX
    assert max(login_times(at_port(attacked))) < LOGIN_S_MAX


def test_idle_connections_keep_no_other_cluster_out(tenants):
    """On the loopback, where all clients have one address."""
    attacked, victim, gateway = tenants
    sources = [f"127.0.1.{number}" for number in range(1, 5)]
    hostile = [
        Raw.plain(attacked.ports[0], source)
        for source, _ in itertools.product(sources, range(PLACES // len(sources)))
    ]
    until(lambda: metric(gateway.ready["metrics"], UNAUTHENTICATED) == PLACES, "no place is free")
    assert max(login_times(at_port(victim))) < LOGIN_S_MAX
    assert hostile[0].is_closed(), "the oldest gives up its place"


def test_guessed_passwords_delay_no_other_clusters_login(tenants):
    attacked, victim, gateway = tenants
    failures = f'freshet_gateway_authentication_failures_total{{cluster="{attacked.id}"}}'
    stopping = threading.Event()

    def guess():
        while not stopping.is_set():
            with pytest.raises(Refused):
                Raw.plain(attacked.ports[0]).log_in(USER, "guessed")

    guessers = [threading.Thread(target=guess) for _ in range(32)]
    for guesser in guessers:
        guesser.start()
    try:
        until(lambda: metric(gateway.ready["metrics"], failures) > 64, "passwords are guessed")
        assert max(login_times(at_port(victim))) < LOGIN_S_MAX
        assert max(login_times(at_port(attacked))) < ATTACKED_LOGIN_S_MAX
    finally:
        stopping.set()
        for guesser in guessers:
            guesser.join()


@pytest.fixture
def network():
    """A network with a gateway's address, many of one /64, and one of another."""
    with own_network([GATEWAY, *ATTACKERS, NEIGHBOUR, VICTIM]) as network:
        yield network


@pytest.fixture
def public(cell, network):
    """A gateway with TLS on an address that is not the loopback's, before one cluster."""
    spec = cell.add_cluster("cl_public")
    gateway = GatewayServer(
        cell, listener={"plain": "", "tls": f"[{GATEWAY}]:0"}, wake={"hold_ms": 300}
    )
    network.run(gateway.start)
    yield spec, gateway
    gateway.stop()


def from_address(network, gateway, source):
    """A connection from an address of the network."""
    at = (GATEWAY, gateway.tls_port)
    return network.run(socket.create_connection, at, LIMIT_S, (source, 0))


def with_tls(network, spec, gateway, source):
    context = ssl.create_default_context(cafile=str(gateway.authority))
    name = f"{spec.host}.{DOMAIN}"
    raw = from_address(network, gateway, source)
    return Raw(context.wrap_socket(raw, server_hostname=name))


def test_many_addresses_of_one_network_have_one_share(public, network):
    spec, gateway = public

    def places():
        return network.run(metric, gateway.ready["metrics"], UNAUTHENTICATED)

    sources = itertools.islice(itertools.cycle(ATTACKERS), PLACES)
    hostile = [from_address(network, gateway, source) for source in sources]
    until(lambda: places() == SHARE, "the attackers have their share and no more")
    times = login_times(lambda: with_tls(network, spec, gateway, VICTIM))
    assert max(times) < LOGIN_S_MAX
    # Somebody who shares the attackers' network gets the places that they leave idle.
    until(lambda: is_let_in(lambda: with_tls(network, spec, gateway, NEIGHBOUR)), "it is let in")
    assert places() <= SHARE
    for client in hostile:
        client.close()


def is_let_in(connect):
    try:
        connect().log_in(USER, PASSWORD)
    except OSError:
        return False
    return True


def test_announced_lengths_take_no_memory_of_the_broker(cell):
    """Clients with a password, whose broker has 256 MiB for all requests together."""
    spec = cell.add_cluster("cl_brokered")
    cell.add_user(spec.id, "hostile", PASSWORD)
    with KeeperStandIn(cell, spec) as keeper, GatewayServer(cell):
        honest = Raw.plain(spec.ports[0])
        honest.log_in(USER, PASSWORD)
        keeper.wait_for_start(1)
        assert honest.metadata()
        hostile = [Raw.plain(spec.ports[0]) for _ in range(20)]
        for client in hostile:
            client.log_in("hostile", PASSWORD)
            assert client.metadata()
            announce(client, 100 << 20)
            client.socket.sendall(bytes(4 << 10))
        held = "freshet_in_flight_bytes"
        address = keeper.broker.metrics_address
        until(lambda: metric(address, held) >= 20 * (4 << 10), "what they sent has arrived")
        assert metric(address, held) < 1 << 20
        began = time.monotonic()
        assert honest.metadata()
        assert time.monotonic() - began < LOGIN_S_MAX
