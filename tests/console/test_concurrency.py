"""Requests at a time: by organization and address, across processes, and without Redis."""

import itertools
import threading

import pytest
from django.contrib.auth.hashers import verify_password
from django.db import connections

from console.base.accounts.models import FailedAttempts
from console.base.accounts.services import hashing
from console.base.common import turns as turns_module
from console.base.common import waiting
from console.base.common.concurrency import Concurrency, Count, TooManyAtOnce, concurrency
from console.base.common.conf import config
from console.base.common.errors import Unavailable
from console.base.common.transactions import outside_transaction, request_transaction
from console.base.common.turns import Turns
from tests.console.browsers import Browser
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import make_user
from tests.redis import running_redis

LIMIT_S = 60
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def redis_url():
    """The URL of a Redis that only this module uses."""
    with running_redis() as url:
        yield url


@pytest.fixture(params=["redis", "memory"])
def counter(request):
    """A counter of either kind."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else "memory://"
    return Concurrency(url)


def count(limit, *, key="", **more):
    return Count("waiting_requests", key or f"org_{next(NUMBERS)}", limit, **more)


def test_a_place_more_than_the_limit_is_refused_and_named(counter):
    one = count(2)
    places = [counter.take([one], lasts_s=LIMIT_S) for _ in range(2)]
    with pytest.raises(TooManyAtOnce) as refused:
        counter.take([one], lasts_s=LIMIT_S)
    quota = refused.value.quota
    assert quota is not None
    assert (quota.name, quota.limit, quota.used) == ("waiting_requests", 2, 2)
    assert counter.used("waiting_requests", one.key) == 2
    for _ in range(2):
        places[0].give_back()
    assert counter.used("waiting_requests", one.key) == 1
    counter.take([one], lasts_s=LIMIT_S)


def test_many_at_once_get_just_as_many_places_as_there_are(counter):
    one, start, taken, refused = count(5), threading.Barrier(20), [], []

    def take():
        start.wait(LIMIT_S)
        try:
            taken.append(counter.take([one], lasts_s=LIMIT_S))
        except TooManyAtOnce as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert (len(taken), len(refused)) == (5, 15)


def test_of_several_counts_all_are_taken_or_none(counter):
    free, full = count(5), count(0)
    with pytest.raises(TooManyAtOnce):
        counter.take([free, full], lasts_s=LIMIT_S)
    assert counter.used("waiting_requests", free.key) == 0


def test_nobody_takes_all_of_a_shared_count(counter):
    shared = count(2, shared=True)
    greedy, modest = count(10), count(10)
    for _ in range(2):
        counter.take([greedy, shared], lasts_s=LIMIT_S)
    with pytest.raises(TooManyAtOnce):
        counter.take([greedy, shared], lasts_s=LIMIT_S)
    # Whoever has none gets one, and no second one.
    counter.take([modest, shared], lasts_s=LIMIT_S)
    with pytest.raises(TooManyAtOnce):
        counter.take([modest, shared], lasts_s=LIMIT_S)


def test_a_place_of_a_process_that_died_is_free_after_its_time(counter):
    one = count(1)
    counter.take([one], lasts_s=0.001)
    taken = threading.Event()
    while not taken.is_set():
        try:
            place = counter.take([one], lasts_s=LIMIT_S)
        except TooManyAtOnce:
            continue
        taken.set()
    place.renew()
    assert counter.used("waiting_requests", one.key) == 1


def test_a_place_that_was_given_back_is_not_taken_by_its_renewal(counter):
    one = count(1)
    place = counter.take([one], lasts_s=LIMIT_S)
    renew = place._counter.renew

    def renew_late(*arguments):
        place.give_back()
        renew(*arguments)

    place._counter.renew = renew_late
    try:
        place.renew()
    finally:
        del place._counter.renew
    assert counter.used("waiting_requests", one.key) == 0
    place.renew()
    assert counter.used("waiting_requests", one.key) == 0


def test_processes_agree(redis_url):
    one = count(1)
    place = Concurrency(redis_url).take([one], lasts_s=LIMIT_S)
    with pytest.raises(TooManyAtOnce):
        Concurrency(redis_url).take([one], lasts_s=LIMIT_S)
    place.give_back()
    Concurrency(redis_url).take([one], lasts_s=LIMIT_S)


def test_without_redis_each_process_counts_for_itself(tmp_path, caplog):
    counter = Concurrency(f"redis+socket://{tmp_path}/nobody.sock", clock=lambda: 0.0)
    one = count(1)
    counter.take([one], lasts_s=LIMIT_S)
    with pytest.raises(TooManyAtOnce):
        counter.take([one], lasts_s=LIMIT_S)
    # Redis was tried once, and logged once.
    assert len([message for message in caplog.messages if "redis_away" in message]) == 1


def take_all(tenant):
    """Takes all places of an organization, as its other requests would."""
    limit = config().limits.waiting_requests
    own = Count(waiting.LIMIT, tenant.id, limit)
    return [concurrency().take([own], lasts_s=LIMIT_S) for _ in range(limit)]


def test_a_request_takes_its_place_when_it_first_waits_and_gives_it_back(tenant):
    with request_transaction() as request:
        waiting.count_waiting(request, organization_id=tenant.id, network="192.0.2.1")
        assert concurrency().used(waiting.LIMIT, tenant.id) == 0
        for _ in range(2):
            with outside_transaction("a test"):
                assert concurrency().used(waiting.LIMIT, tenant.id) == 1
    assert concurrency().used(waiting.LIMIT, tenant.id) == 0


def test_an_organization_with_too_many_waiting_requests_learns_which_limit(
    api, tenant, other_tenant
):
    take_all(tenant)
    cluster = "/clusters/cl_" + "a" * 20
    refused = api().patch(cluster, {"name": "x"})
    document = assert_problem(refused, 429, "too_many_at_once")
    limit = config().limits.waiting_requests
    assert document["quota"] == {"name": "waiting_requests", "limit": limit, "used": limit}
    assert refused["Retry-After"] == "1"
    # Other organizations wait, and the organization's own requests that do not wait are served.
    other = ApiClient(other_tenant.key)
    assert_problem(other.patch(cluster, {"name": "x"}), 404, "not_found")
    shown = {item["name"]: item["used"] for item in api().get("/limits").json()["items"]}
    assert shown["waiting_requests"] == limit
    assert api().get("/api-keys").status_code == 200


def test_requests_of_many_organizations_from_one_address_are_limited(api, tenant, monkeypatch):
    limits = config().limits
    before = limits.waiting_requests_per_address
    object.__setattr__(limits, "waiting_requests_per_address", 0)
    try:
        with request_transaction() as request:
            waiting.count_waiting(request, organization_id=tenant.id, network="192.0.2.1")
            with pytest.raises(TooManyAtOnce) as refused, outside_transaction("a test"):
                pass
            assert refused.value.quota is not None
            assert refused.value.quota.name == "waiting_requests_per_address"
        with request_transaction() as request:
            # All requests of one machine come from the loopback.
            waiting.count_waiting(request, organization_id=tenant.id, network="127.0.0.1")
            with outside_transaction("a test"):
                pass
    finally:
        object.__setattr__(limits, "waiting_requests_per_address", before)


def test_passwords_of_an_address_are_checked_a_few_at_a_time(tenant):
    limit = config().limits.password_checks_per_address
    taken = Count(f"{hashing.LIMIT}_per_address", "127.0.0.1", limit)
    places = [concurrency().take([taken], lasts_s=LIMIT_S) for _ in range(limit)]
    refused = Browser().sign_in(tenant.owner)
    document = assert_problem(refused, 429, "too_many_at_once")
    assert document["quota"]["name"] == "password_checks_per_address"
    places[0].give_back()
    assert Browser().sign_in(tenant.owner).status_code == 200


def test_keys_take_turns_however_many_of_one_wait():
    turns, order, began = Turns(1, "Too many."), [], threading.Event()
    release = threading.Event()

    def work(key):
        with turns.turn(key):
            order.append(key)
            began.set()
            assert release.wait(LIMIT_S)

    threads = []
    for key in ("greedy", "greedy", "greedy", "modest"):
        threads.append(threading.Thread(target=work, args=[key]))
        threads[-1].start()
        # The next one comes behind it.
        assert began.wait(LIMIT_S)
        waiting_now = len(threads) - 1
        while sum(map(len, turns._waiting.values())) < waiting_now:
            pass
    release.set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert order == ["greedy", "greedy", "modest", "greedy"]


def test_a_key_leaves_places_to_others_and_frees_its_own(monkeypatch):
    monkeypatch.setattr(turns_module, "TURN_WITHIN_S", 0.01)
    turns = Turns(3, "Too many.", places_per_key=1)
    with turns.turn("one"):
        with pytest.raises(Unavailable), turns.turn("one"):
            pass
        full = pytest.raises(Unavailable)
        with turns.turn("two"), turns.turn("three"), full, turns.turn("four"):
            pass
    with turns.turn("one"):
        pass


def test_who_waits_too_long_for_a_turn_is_refused(monkeypatch):
    monkeypatch.setattr(turns_module, "TURN_WITHIN_S", 0.01)
    turns = Turns(1, "Too many.")
    refused = pytest.raises(Unavailable, match="Too many")
    with turns.turn("one"), refused, turns.turn("two"):
        pass
    with turns.turn("two"):
        pass


@pytest.mark.django_db(transaction=True)
def test_guesses_that_arrive_together_all_count(monkeypatch):
    """All of them are begun before the first password is looked at."""
    user, arrived = make_user("ada@acme.example"), threading.Barrier(5)
    check, answers = verify_password, []

    def check_together(*arguments):
        arrived.wait(LIMIT_S)
        return check(*arguments)

    monkeypatch.setattr(hashing, "verify_password", check_together)
    monkeypatch.setattr(hashing, "_turns", Turns(5, "Too many."))
    object.__setattr__(config().limits, "password_checks_per_address", 10)

    def guess():
        answers.append(Browser().sign_in(user, "a wrong password").status_code)

    try:
        threads = [threading.Thread(target=in_thread, args=[guess]) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
    finally:
        object.__setattr__(config().limits, "password_checks_per_address", 4)
    assert answers == [401] * 5
    counts = FailedAttempts.objects.values_list("failures", flat=True)
    # By account and network, and by account alone.
    assert list(counts) == [5, 5]
    # None of them has room for a sixth one.
    assert Browser().sign_in(user).status_code == 429


def in_thread(work):
    try:
        work()
    finally:
        connections.close_all()
