"""Hostile clients: slow, oversized, too many."""

import struct

import pytest

from tests.gateway.cells import PASSWORD, USER, GatewayServer, until
from tests.gateway.raw import METADATA, Raw, metrics


@pytest.fixture
def small(cell):
    """A gateway with short timeouts and small limits, before a cluster that sleeps."""
    spec = cell.add_cluster("cl_hostile")
    limits = {
        "authentication_timeout_ms": 1500,
        "connections_per_address_max": 5,
        "connections_at_once_per_address": 8,
        "connections_per_s_per_address": 1,
    }
    with GatewayServer(cell, limits=limits) as gateway:
        yield cell, spec, gateway
    assert cell.store.wakes() == {}, "an unauthenticated client woke a cluster"


@pytest.mark.parametrize("length", [(512 << 10) + 1, -1, 0x7FFFFFFF, -0x80000000])
def test_lengths_that_nobody_means_close_the_connection(small, length):
    _, spec, _ = small
    client = Raw.plain(spec.ports[0])
    client.socket.sendall(struct.pack(">i", length))
    assert client.is_closed()


def test_slow_clients_are_closed(small):
    _, spec, gateway = small
    silent, partial, in_tls = (
        Raw.plain(spec.ports[0]),
        Raw.plain(spec.ports[0]),
        Raw.plain(gateway.tls_port),
    )
    partial.socket.sendall(b"\0\0\0")
    in_tls.socket.sendall(b"\x16\x03\x01")
    for client in (silent, partial, in_tls):
        assert client.is_closed()
    address = gateway.ready["metrics"]
    until(
        lambda: metrics(address)['freshet_gateway_refusals_total{reason="not_authenticated"}'] == 3,
        "three were not authenticated",
    )


def test_requests_before_authentication_close_the_connection(small):
    _, spec, _ = small
    client = Raw.plain(spec.ports[0])
    client.send(METADATA, 1, struct.pack(">i", 0))
    assert client.is_closed()


def test_text_and_tls_at_a_plain_port_are_closed(small):
    _, spec, _ = small
    for greeting in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01"):
        client = Raw.plain(spec.ports[0])
        client.socket.sendall(greeting)
        assert client.is_closed()


def test_an_address_has_so_many_connections_and_no_more_a_second(small):
    _, spec, gateway = small
    kept = [Raw.plain(spec.ports[0], "127.0.0.2") for _ in range(5)]
    assert Raw.plain(spec.ports[0], "127.0.0.2").is_closed()
    others = Raw.plain(spec.ports[0], "127.0.0.3")
    # The rate of an address: at a cluster's own port, the listener keeps the cluster's.
    for _ in range(20):
        Raw.plain(gateway.tls_port, "127.0.0.4").close()
    address, rate = gateway.ready["metrics"], 'freshet_gateway_refusals_total{reason="rate"}'
    until(lambda: metrics(address).get(rate), "the address is too fast")
    figures = metrics(gateway.ready["metrics"])
    assert figures['freshet_gateway_refusals_total{reason="address"}'] >= 1
    for client in (*kept, others):
        client.close()


def test_after_all_that_a_sound_client_is_let_in(cell):
    spec = cell.add_cluster("cl_sound")
    with GatewayServer(cell, wake={"hold_ms": 300}):
        for _ in range(50):
            client = Raw.plain(spec.ports[0])
            client.socket.sendall(struct.pack(">i", 0x7FFFFFFF))
            assert client.is_closed()
        client = Raw.plain(spec.ports[0])
        client.log_in(USER, PASSWORD)
        assert client.is_closed(), "nobody starts the broker"
    assert list(cell.store.wakes()) == [spec.id]
