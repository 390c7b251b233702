"""The PROXY protocol, version 2: who may send its header, and whose address counts then."""

import socket
import ssl
import struct
from functools import partial

import pytest

from tests.gateway.cells import DOMAIN, PASSWORD, USER, GatewayServer, until
from tests.gateway.raw import LIMIT_S, Raw, metric

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
BALANCER, ELSEWHERE = "127.0.0.7", "127.0.0.8"


def header(client, port=50_000, command=1):
    """The header for a client of IPv4."""
    addresses = socket.inet_aton(client) + socket.inet_aton("10.0.0.1")
    rest = addresses + struct.pack(">HH", port, 9443)
    return SIGNATURE + struct.pack(">BBH", 0x20 | command, 0x11, len(rest)) + rest


@pytest.fixture
def behind(cell):
    """A gateway behind a balancer."""
    spec = cell.add_cluster("cl_behind")
    with GatewayServer(
        cell,
        listener={"balancers": [f"{BALANCER}/32"]},
        limits={"unauthenticated_connections_max": 24},
        log={"level": "debug", "format": "json"},
        wake={"hold_ms": 300},
    ) as gateway:
        yield spec, gateway


def connect(port, source, first):
    client = Raw(socket.create_connection(("127.0.0.1", port), LIMIT_S, (source, 0)))
    client.socket.sendall(first)
    return client


@pytest.mark.parametrize("command", [1, 0], ids=["for a client", "for itself"])
def test_a_balancer_names_the_client(behind, command):
    spec, gateway = behind
    client = connect(spec.ports[0], BALANCER, header("203.0.113.5", command=command))
    client.log_in(USER, PASSWORD)
    client.close()
    peer = "203.0.113.5:50000" if command else f"{BALANCER}:"
    until(lambda: f'"peer":"{peer}' in gateway.log.read_text(), f"{peer} in the log")


def test_a_balancer_names_the_client_before_tls(behind):
    spec, gateway = behind
    plain = connect(gateway.tls_port, BALANCER, header("203.0.113.5"))
    context = ssl.create_default_context(cafile=str(gateway.authority))
    name = f"{spec.host}.{DOMAIN}"
    client = Raw(context.wrap_socket(plain.socket, server_hostname=name))
    client.log_in(USER, PASSWORD)


def test_nobody_else_may_send_a_header_and_a_balancer_has_to(behind):
    spec, gateway = behind
    for port in (spec.ports[0], gateway.tls_port):
        assert is_refused(connect(port, ELSEWHERE, header("203.0.113.5")))
        for wrong in (b"PROXY TCP4 203.0.113.5 10.0.0.1 5 6\r\n", b"\x16\x03\x01\x02\x00" * 9):
            assert is_refused(connect(port, BALANCER, wrong))
    connect(spec.ports[0], ELSEWHERE, b"").log_in(USER, PASSWORD)


def is_refused(client):
    """Whether nothing comes but, by TLS, the alert that it is not spoken here."""
    rest = client.rest()
    return rest == b"" or rest.startswith(b"\x15\x03")


def has_places(address, count):
    return metric(address, "freshet_gateway_unauthenticated_connections") == count


def test_shares_are_by_the_clients_address(behind):
    spec, gateway = behind
    address = gateway.ready["metrics"]
    for client in ("203.0.113.5", "203.0.113.6"):
        idle = []
        for places in (1, 2, 3):
            idle.append(connect(spec.ports[0], BALANCER, header(client)))
            until(partial(has_places, address, places), "it has its place")
        refused = connect(spec.ports[0], BALANCER, header(client))
        assert refused.is_closed(), "an eighth of 24 are 3"
        connect(spec.ports[0], BALANCER, header("203.0.113.7")).log_in(USER, PASSWORD)
        for one in idle:
            one.close()
        until(lambda: has_places(address, 0), "all have left")
    assert metric(address, 'freshet_gateway_refusals_total{reason="share"}') == 2
