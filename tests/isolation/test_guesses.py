"""Guessed passwords by address, in a network of the test's own: who waits, and for how long.

Without waits a gateway checked 111 to 191 guesses a second, with up to a whole core.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from tests.gateway.cells import DOMAIN, PASSWORD, USER, Cell, GatewayServer, until
from tests.gateway.raw import LIMIT_S, Raw, Refused, metric
from tests.isolation.networks import own_network

# One address each of many networks, many of one, and those of clients that guess nothing.
GATEWAY = "192.0.2.1"
NETWORKS = [f"10.{number}.0.1" for number in range(1, 17)]
ONE_NETWORK = [f"10.99.0.{number}" for number in range(1, 33)]
KNOWN, SHARED = "198.51.100.1", "198.51.100.2"
NEW = ["203.0.113.1", "203.0.113.2", "203.0.113.3"]
USERS = [f"user-{number}" for number in range(40)]
CLUSTERS = ["cl_networks", "cl_addresses", "cl_users", "cl_old", "cl_quiet"]

# `docs/decisions/0020-a-guess-waits-and-its-user-does-not.md` has these numbers: how many guesses
# are checked at once and then a second, of one user from all addresses and of a cluster.
OF_USER = (20, 0.9)
OF_CLUSTER = (40, 5.0)
# How much longer a login takes than one at the same moment to a cluster that nobody attacks, in the
# quickest of some rounds: what a busy machine delays once, guesses would delay in each.
LONGER_S_MAX = 2.0
ROUNDS = 3
CORE_MAX = 0.2
ATTACK_S = 5.0


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Specs of clusters, a network, and in it their gateway, not on the loopback."""
    cell = Cell(tmp_path_factory.mktemp("guesses") / "cell")
    specs = {cluster: cell.add_cluster(cluster) for cluster in CLUSTERS}
    cell.add_user("cl_users", USERS[0], PASSWORD)
    with own_network([GATEWAY, *NETWORKS, *ONE_NETWORK, KNOWN, SHARED, *NEW]) as network:
        gateway = GatewayServer(
            cell, listener={"plain": "", "tls": f"{GATEWAY}:0"}, wake={"hold_ms": 300}
        )
        network.run(gateway.start)
        yield specs, network, gateway
        gateway.stop()


class Attacked:
    """A cluster of the gateway, whose passwords are guessed."""

    def __init__(self, served, cluster):
        self.served = served
        specs, self.network, self.gateway = served
        self.spec = specs[cluster]
        self.context = ssl.create_default_context(cafile=str(self.gateway.authority))
        self.open = set()
        self.stopping = threading.Event()

    def connect(self, source):
        at = (GATEWAY, self.gateway.tls_port)
        raw = self.network.run(socket.create_connection, at, LIMIT_S, (source, 0))
        self.open.add(raw)
        if self.stopping.is_set():
            raw.close()
        try:
            name = f"{self.spec.host}.{DOMAIN}"
            return Raw(self.context.wrap_socket(raw, server_hostname=name))
        finally:
            self.open.discard(raw)

    def log_in(self, source, user=USER, password=PASSWORD):
        """How long it takes from connecting to the last answer; None where it is not let in."""
        began = time.monotonic()
        try:
            client = self.connect(source)
        except OSError:
            return None
        self.open.add(client.socket)
        try:
            client.log_in(user, password)
        except (OSError, Refused):
            return None
        finally:
            self.open.discard(client.socket)
            client.close()
        return time.monotonic() - began

    def extra_wait(self, source, user=USER):
        """How much longer it takes to log in than to a cluster that nobody attacks."""
        quiet = Attacked(self.served, "cl_quiet").log_in(source)
        here = self.log_in(source, user)
        assert quiet is not None
        assert here is not None
        return here - quiet

    def least_wait(self, logins):
        """The longest extra wait of these logins, in the round in which it is least."""
        rounds = ([self.extra_wait(*login) for login in logins] for _ in range(ROUNDS))
        return min(map(max, rounds))

    @contextlib.contextmanager
    def guessed(self, clients):
        """A thread for each client, as user and address, tries one password after the other."""
        numbers = itertools.count()

        def guess(user, source):
            while not self.stopping.is_set():
                self.log_in(source, user, f"guess-{next(numbers)}")

        threads = [threading.Thread(target=guess, args=client) for client in clients]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            while any(thread.is_alive() for thread in threads):
                for one in list(self.open):
                    with contextlib.suppress(OSError):
                        one.shutdown(socket.SHUT_RDWR)
                threads[-1].join(0.05)
                threads = [thread for thread in threads if thread.is_alive()] or threads[:1]

    def checked(self):
        """How many wrong passwords were checked."""
        name = f'freshet_gateway_authentication_failures_total{{cluster="{self.spec.id}"}}'
        return self.network.run(metric, self.gateway.ready["metrics"], name)

    def core_s(self):
        """Seconds that the gateway has had a core for."""
        fields = Path(f"/proc/{self.gateway.process.pid}/stat").read_text().rsplit(")", 1)[1]
        ticks = sum(int(field) for field in fields.split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")


def watch(attacked, clients, limit, logins):
    """Has passwords guessed, and meanwhile others log in."""
    at_once, per_s = limit
    first, checked = time.monotonic(), attacked.checked()
    with attacked.guessed(clients):
        until(lambda: attacked.checked() >= checked + at_once / 2, "passwords are guessed")
        began, core_s = time.monotonic(), attacked.core_s()
        wait = attacked.least_wait(logins)
        # The attack goes on while they log in, and for a while after it.
        until(lambda: time.monotonic() >= began + ATTACK_S, "the attack has lasted")
        guesses, now = attacked.checked() - checked, time.monotonic()
        assert guesses <= at_once + per_s * (now - first)
        assert (attacked.core_s() - core_s) / (now - began) < CORE_MAX
    assert wait < LONGER_S_MAX


def test_guesses_from_many_networks_are_few_and_keep_their_user_in(served):
    attacked = Attacked(served, "cl_networks")
    assert attacked.log_in(KNOWN) is not None
    clients = [(USER, source) for source in NETWORKS]
    logins = [(KNOWN,), *((source,) for source in NEW), (KNOWN,)]
    watch(attacked, clients, OF_USER, logins)


def test_guesses_from_many_addresses_of_one_network_are_few(served):
    attacked = Attacked(served, "cl_addresses")
    clients = [(USER, source) for source in ONE_NETWORK]
    watch(attacked, clients, OF_USER, [(source,) for source in NEW])


def test_guesses_at_many_users_are_few_together(served):
    attacked = Attacked(served, "cl_users")
    clients = list(zip(USERS, itertools.cycle(NETWORKS), strict=False))
    watch(attacked, clients, OF_CLUSTER, [(source, USERS[0]) for source in NEW])


def test_an_old_password_delays_no_other_application_of_its_address(served):
    attacked = Attacked(served, "cl_old")
    stopping = threading.Event()

    def retry():
        while not stopping.wait(0.1):
            attacked.log_in(SHARED, USER, "the password before")

    retrying = threading.Thread(target=retry)
    retrying.start()
    try:
        until(lambda: attacked.checked() > 15, "it is sent again and again")
        wait = attacked.least_wait([(SHARED,)] * 3)
    finally:
        stopping.set()
        retrying.join()
    assert wait < LONGER_S_MAX
