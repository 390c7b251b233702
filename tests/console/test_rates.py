"""Limits of API requests: by organization, by address, across processes, and without Redis."""

import itertools
import time
from types import SimpleNamespace

import pytest
from django.test import Client

from console.base.common import rates
from console.base.common.conf import config
from console.base.common.places import AWAY_S
from console.base.common.rates import WINDOW_S, Rates
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.redis import running_redis


@pytest.fixture
def limits(monkeypatch):
    """Returns a function that sets limits for one test.

    The clock of the counters stands still, so that all requests of a test are in one window.
    """
    begin = time.time()
    moment = SimpleNamespace(time=lambda: begin)
    for module in ("console.base.common.rates", "limits.storage.memory", "limits.strategies"):
        monkeypatch.setattr(f"{module}.time", moment)

    def limit(**values):
        for name, value in values.items():
            before = getattr(config().limits, name)
            object.__setattr__(config().limits, name, value)
            undo.append((name, before))

    undo: list[tuple[str, int]] = []
    yield limit
    for name, before in reversed(undo):
        object.__setattr__(config().limits, name, before)


@pytest.fixture(scope="module")
def redis_url():
    """The URL of a Redis that only this module uses."""
    with running_redis() as url:
        yield url


NUMBERS = itertools.count()


def new_key():
    return f"org_{next(NUMBERS)}"


def count_times(counter, key, per_second=1, times=1):
    return [
        counter.count(policy="organization", key=key, per_second=per_second) for _ in range(times)
    ]


def test_an_organization_that_asks_too_often_learns_when_to_come_back(api, limits):
    limits(api_requests_per_second=1)
    allowed = [api().get("/api-keys") for _ in range(WINDOW_S)]
    assert {response.status_code for response in allowed} == {200}
    assert allowed[0]["RateLimit-Policy"] == f'"organization";q={WINDOW_S};w={WINDOW_S}'
    assert allowed[0]["RateLimit"].startswith(f'"organization";r={WINDOW_S - 1};t=')
    assert allowed[-1]["RateLimit"].startswith('"organization";r=0;t=')
    refused = api().get("/api-keys")
    document = assert_problem(refused, 429, "rate_limited")
    assert document["quota"] == {
        "name": "api_requests_per_second",
        "limit": WINDOW_S,
        "used": WINDOW_S,
    }
    assert 1 <= int(refused["Retry-After"]) <= WINDOW_S
    assert refused["RateLimit-Policy"] == allowed[0]["RateLimit-Policy"]
    assert refused["RateLimit"] == f'"organization";r=0;t={refused["Retry-After"]}'


def test_a_refused_change_is_not_made(api, limits):
    limits(api_requests_per_second=1)
    names = {f"key {place}" for place in range(WINDOW_S + 1)}
    answers = {name: api().post("/api-keys", {"name": name}).status_code for name in names}
    rates.forget_rates()
    shown = {item["name"] for item in api().get("/api-keys").json()["items"]}
    assert shown & names == {name for name, status in answers.items() if status == 201}
    assert sorted(answers.values()) == [201] * WINDOW_S + [429]


def test_organizations_do_not_count_against_each_other(api, other_tenant, limits):
    limits(api_requests_per_second=1)
    for _ in range(WINDOW_S + 1):
        last = api().get("/api-keys")
    assert last.status_code == 429
    assert api(other_tenant.key).get("/api-keys").status_code == 200
    assert api(None).get("/session").status_code == 200


def test_who_is_nobody_counts_by_address(limits, db):
    limits(anonymous_requests_per_second=1)
    for _ in range(WINDOW_S):
        assert ApiClient().get("/session").status_code == 200
    refused = ApiClient().get("/session")
    document = assert_problem(refused, 429, "rate_limited")
    assert document["quota"]["name"] == "anonymous_requests_per_second"
    assert refused["RateLimit-Policy"].startswith('"address";')
    elsewhere = Client(REMOTE_ADDR="198.51.100.9", raise_request_exception=False)
    assert ApiClient(client=elsewhere).get("/session").status_code == 200


def test_keys_are_not_found_by_trying(api, limits):
    limits(anonymous_requests_per_second=1)
    wrong = "fk_" + "a" * 20 + "_" + "a" * 32
    answers = [ApiClient(wrong).get("/api-keys").status_code for _ in range(WINDOW_S + 1)]
    assert answers == [401] * WINDOW_S + [429]
    # Whoever has a key is served from the same address.
    assert api().get("/api-keys").status_code == 200


def test_probes_are_never_refused(limits, client):
    limits(anonymous_requests_per_second=0)
    assert client.get("/healthz").status_code == 200
    assert client.get("/api/v1/session").status_code == 429


def test_processes_agree(redis_url):
    one, other, key = Rates(redis_url), Rates(redis_url), new_key()
    assert all(rate.allowed for rate in count_times(one, key, times=WINDOW_S))
    (refused,) = count_times(other, key)
    assert not refused.allowed
    assert count_times(other, new_key())[0].allowed


@pytest.mark.parametrize("kind", ["redis", "memory"])
def test_what_is_left_goes_down(kind, request):
    url = request.getfixturevalue("redis_url") if kind == "redis" else "amqp://localhost"
    states = count_times(Rates(url), new_key(), times=WINDOW_S + 1)
    assert [rate.remaining for rate in states] == [*range(WINDOW_S - 1, -1, -1), 0]
    assert [rate.allowed for rate in states] == [True] * WINDOW_S + [False]
    assert all(0 <= rate.reset_s <= WINDOW_S for rate in states)


def test_without_redis_each_process_counts_for_itself(tmp_path, caplog):
    now = [0.0]
    counter = Rates(f"redis+socket://{tmp_path}/nobody.sock", clock=lambda: now[0])
    key = new_key()
    assert [rate.allowed for rate in count_times(counter, key, times=WINDOW_S + 1)] == [
        *[True] * WINDOW_S,
        False,
    ]
    # Redis was tried once, and logged once.
    assert len([message for message in caplog.messages if "redis_away" in message]) == 1


def test_redis_counts_again_once_it_is_back(caplog):
    now, key = [0.0], new_key()
    with running_redis() as first:
        counter = Rates(first, clock=lambda: now[0])
        count_times(counter, key, times=WINDOW_S)
        assert not count_times(counter, key)[0].allowed
    # Redis has stopped: this process begins to count by itself.
    assert count_times(counter, key)[0].allowed
    assert any("redis_away" in message for message in caplog.messages)
    with running_redis(first) as again:
        key = new_key()
        count_times(counter, key, times=WINDOW_S)
        assert count_times(Rates(again), key)[0].allowed
        now[0] += AWAY_S
        count_times(counter, key, times=WINDOW_S)
        assert not count_times(Rates(again), key)[0].allowed
