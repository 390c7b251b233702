"""Slow requests in numbers: beside them, another organization's requests are answered.

A web process has 20 connections to PostgreSQL. Each crowd here is larger than that.
"""

from __future__ import annotations

import os
import secrets
import signal
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from tests.isolation.crowds import Crowd, client, looping, used, wait_until_used
from tests.service.api import Api
from tests.service.traffic import librdkafka_settings
from tests.supervisor.run import wait_until

# More than a web process has connections to PostgreSQL, of so many that ask again and again.
BROWSES, BROWSERS = 24, 32
SIGN_INS = 30
WAITS, WAITS_MAX = 40, 32
TAILS, TAILS_MAX = 26, 20
PASSWORD = "correct horse battery"
TOPIC = "t"


@pytest.fixture
def victim(service):
    """Another organization with a cluster; `check` makes requests that must all be answered."""
    victim = Victim(service)
    yield victim
    victim.api.leave()


class Victim:
    """Somebody else, who works with the console and by REST meanwhile."""

    def __init__(self, service) -> None:
        self.service = service
        self.email = f"{secrets.token_hex(6)}@example.org"
        signed_up = {"email": self.email, "password": PASSWORD, "organization_name": "Victim"}
        with client(service) as http:
            answer = http.post("/signup", json=signed_up)
        assert answer.status_code == 201, answer.text
        self.api = Api(service.address, answer.json()["api_key"]["secret"])
        self.cluster = self.api.create_cluster("victim")
        self._topics = 0

    def check(self) -> None:
        """Lists, creates, reads records and signs in; each request must be answered."""
        for _ in range(5):
            self.api.call("GET", "/clusters", status=200)
            self.api.call("GET", f"/clusters/{self.cluster}/topics", status=200)
        self._topics += 1
        name = f"t{self._topics}"
        self.api.call("POST", f"/clusters/{self.cluster}/topics", {"name": name}, status=201)
        self.api.call("POST", "/api-keys", {"name": name, "role": "viewer"}, status=201)
        browse = f"/clusters/{self.cluster}/topics/{name}/messages?wake=true"
        assert self.api.call("GET", browse, status=200)["items"] == []
        with client(self.service) as http:
            given = {"email": self.email, "password": PASSWORD}
            answer = http.post("/session", json=given)
        assert answer.status_code == 200, answer.text


def awake_cluster(api: Api) -> str:
    """Makes a cluster with one record, whose broker therefore runs."""
    cluster_id = api.create_cluster("slow")
    api.create_topic(cluster_id, TOPIC)
    produce = f"/clusters/{cluster_id}/topics/{TOPIC}/messages?wake=true"
    api.call("POST", produce, {"value": "x"}, status=201)
    return cluster_id


@contextmanager
def paused_broker(service, cluster_id):
    """Stops the broker of a cluster, which then answers nothing, for as long as the block lasts."""
    pids = [
        identity.pid
        for identity in service.brokers()
        if cluster_id.encode().replace(b"_", b"-") in command_of(identity.pid)
    ]
    assert len(pids) == 1
    os.kill(pids[0], signal.SIGSTOP)
    try:
        yield
    finally:
        # The keeper may have ended it meanwhile.
        if Path(f"/proc/{pids[0]}").exists():
            os.kill(pids[0], signal.SIGCONT)


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"_", b"-")


def test_slow_browses(service, attacker, victim):
    cluster_id = awake_cluster(attacker)
    victim.check()
    made = attacker.call("POST", "/api-keys", {"name": "reader", "role": "reader"}, status=201)
    address = f"/clusters/{cluster_id}/topics/{TOPIC}/messages"

    def browse(_number: int) -> httpx.Response:
        with client(service, made["secret"]) as http:
            return http.get(address, params={"filter": "nothing"})

    with paused_broker(service, cluster_id), looping(BROWSERS, browse) as answers:
        wait_until_used(attacker.http, "waiting_requests", BROWSES)
        victim.check()
        assert used(attacker.http, "waiting_requests")
    # The keeper may have replaced the broker, which then does not answer.
    assert {answer.status_code for answer in answers} <= {200, 503}
    wait_until(lambda: not used(attacker.http, "waiting_requests"), "nobody waits any more")


def test_wrong_passwords(service, victim):
    victim.check()

    def guess(number: int) -> httpx.Response:
        given = {"email": f"{secrets.token_hex(6)}@example.org", "password": "a wrong password"}
        with client(service, source=f"127.0.1.{number + 1}") as http:
            return http.post("/session", json=given)

    with looping(SIGN_INS, guess) as answers:
        wait_until(lambda: len(answers) >= SIGN_INS, "passwords are guessed")
        victim.check()
    assert {answer.status_code for answer in answers} <= {401, 429, 503}
    # On a slow machine some wait in vain for their turn behind the other addresses.
    refused = [answer.json()["detail"] for answer in answers if answer.status_code == 503]
    assert set(refused) <= {"Too many passwords are checked at this moment."}


def test_an_address_has_few_passwords_checked_at_a_time(service):
    def guess(_number: int) -> httpx.Response:
        given = {"email": f"{secrets.token_hex(6)}@example.org", "password": "a wrong password"}
        with client(service, source="127.0.2.1") as http:
            return http.post("/session", json=given)

    crowd = Crowd(12, guess).start()
    refused = [answer for answer in crowd.end() if answer.status_code == 429]
    assert {answer.json()["quota"]["name"] for answer in refused} == {"password_checks_per_address"}
    assert all(answer.json()["code"] == "too_many_at_once" for answer in refused)
    assert all(answer.headers["Retry-After"] == "1" for answer in refused)


@contextmanager
def unfinished_operation(api: Api, cluster_id: str):
    """An operation that is not finished before the block ends: a client keeps the cluster awake."""
    connection = api.connect(cluster_id)
    admin = AdminClient(librdkafka_settings(connection))
    assert TOPIC in admin.list_topics(timeout=60).topics
    yield api.call("POST", f"/clusters/{cluster_id}:sleep", status=202)["id"]
    del admin


def test_waits_for_an_operation(service, attacker, victim):
    cluster_id = awake_cluster(attacker)
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")
    victim.check()
    with unfinished_operation(attacker, cluster_id) as operation:

        def wait(_number: int) -> httpx.Response:
            with client(service, key) as http:
                return http.get(f"/operations/{operation}", params={"wait": 30})

        crowd = Crowd(WAITS, wait).start()
        wait_until_used(attacker.http, "waiting_requests", WAITS_MAX)
        wait_until(lambda: crowd.asking == WAITS_MAX, "those beyond the limit are refused")
        victim.check()
    crowd.end()
    assert crowd.statuses() == [200] * WAITS_MAX + [429] * (WAITS - WAITS_MAX)
    refused = next(answer for answer in crowd.answers if answer.status_code == 429)
    quota = {"name": "waiting_requests", "limit": WAITS_MAX, "used": WAITS_MAX}
    assert refused.json()["quota"] == quota
    assert refused.headers["Retry-After"] == "1"


def test_live_tails(service, attacker, victim):
    cluster_id = awake_cluster(attacker)
    victim.check()
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")
    address = f"/clusters/{cluster_id}/topics/{TOPIC}/messages/stream"
    with ExitStack() as open_tails:
        https = [open_tails.enter_context(client(service, key)) for _ in range(TAILS)]

        def watch(number: int) -> httpx.Response:
            http = https[number]
            response = http.send(http.build_request("GET", address), stream=True)
            open_tails.callback(response.close)
            return response

        crowd = Crowd(TAILS, watch).start()
        crowd.end()
        assert crowd.statuses() == [200] * TAILS_MAX + [429] * (TAILS - TAILS_MAX)
        assert used(attacker.http, "live_tails") == TAILS_MAX
        victim.check()
    wait_until(lambda: not used(attacker.http, "live_tails"), "all tails are closed")
