"""Requests take turns: of one organization few compute at a time, whatever it sends."""

import threading
import time
from contextlib import nullcontext

import pytest

from console.base.common import turns as turns_module
from console.base.common.places import TooManyAtOnce
from console.base.common.transactions import outside_transaction, request_transaction
from console.base.common.turn_keys import TurnKeys
from console.base.common.turns import RequestTurn, Turns
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.scopes import running

LIMIT_S = 60


@pytest.fixture
def turns(monkeypatch):
    """Turns of a process in which two requests compute at a time, and one of an organization."""
    made = Turns(2, "Too many.", places_per_key=1)
    monkeypatch.setattr(turns_module, "request_turns", made)
    return made


def until(holds):
    pause = threading.Event()
    for _ in range(LIMIT_S * 100):
        if holds():
            return
        pause.wait(0.01)
    raise AssertionError


def begin(turns, key="one"):
    turn = RequestTurn(turns)
    turn.begin(key, nullcontext)
    return turn


def test_one_that_waits_leaves_its_turn_to_others(turns):
    turn = begin(turns)
    turn.pause()
    other = begin(turns)
    with running(turn.resume):
        until(lambda: turns.waiting("one") == 1)
        other.end()
    assert turn._held
    turn.end()
    begin(turns).end()


def test_one_that_has_begun_comes_before_those_that_have_not(turns):
    order = []
    begun = begin(turns)
    begun.pause()
    holder = begin(turns)

    def start():
        turn = begin(turns)
        order.append("new")
        turn.end()

    def go_on():
        begun.resume()
        order.append("begun")
        begun.end()

    with running(start):
        until(lambda: turns.waiting("one") == 1)
        with running(go_on):
            until(lambda: turns.waiting("one") == 2)
            holder.end()
    assert order == ["begun", "new"]


def test_who_waits_too_long_or_behind_too_many_is_refused(turns, monkeypatch):
    monkeypatch.setattr(turns_module, "REQUEST_WITHIN_S", 0.01)
    holder = begin(turns)
    with pytest.raises(TooManyAtOnce) as refused:
        begin(turns)
    assert refused.value.retry_after_s == 1
    monkeypatch.setattr(turns_module, "REQUESTS_WAITING_MAX", 0)
    monkeypatch.setattr(turns_module, "REQUEST_WITHIN_S", LIMIT_S)
    with pytest.raises(TooManyAtOnce):
        begin(turns)
    # Others are served meanwhile.
    begin(turns, "two").end()
    holder.end()
    begin(turns).end()


def test_one_that_has_begun_is_never_refused(turns, monkeypatch):
    monkeypatch.setattr(turns_module, "REQUEST_WITHIN_S", 0.01)
    turn = begin(turns)
    turn.pause()
    holder = begin(turns)
    turn.resume()
    assert not turn._held
    turn.end()
    holder.end()
    assert turns._free == 2


def test_who_is_alone_has_more_turns_until_somebody_comes():
    moments = [0.0]
    turns = Turns(8, "Too many.", places_per_key=1, places_alone=3, clock=lambda: moments[0])
    own = [begin(turns) for _ in range(3)]
    assert not turns.take("one", within_s=0.0)
    # Somebody else does not wait, and from then on the organization has one.
    begin(turns, "two").end()
    for turn in own[:2]:
        turn.end()
    assert not turns.take("one", within_s=0.0)
    own[2].end()
    turn = begin(turns)
    assert not turns.take("one", within_s=0.0)
    moments[0] += turns_module.PRESENT_S + 1
    begin(turns).end()
    turn.end()


@pytest.mark.django_db(transaction=True)
def test_a_wait_of_the_request_gives_its_turn_back(turns):
    with request_transaction() as request:
        request.turn = turn = begin(turns)
        with outside_transaction("a test"), outside_transaction("within it"):
            begin(turns).end()
        monopolist = turns.take("one", within_s=0.0)
        assert not monopolist
        turn.end()


@pytest.mark.django_db(transaction=True)
def test_what_computes_within_a_wait_has_a_turn_and_is_counted(monkeypatch):
    shared = Turns(2, "Too many.", places_per_key=1, share_of=lambda _: 0.25)
    monkeypatch.setattr(turns_module, "request_turns", shared)
    shared.take("two", within_s=0.0)
    with request_transaction() as request:
        request.turn = turn = begin(shared)
        with outside_transaction("a test"):
            with request.compute() as charge:
                assert not shared.take("one", within_s=0.0)
                charge(0.5 * turns_module.BURST_S)
            # Half of the burst is left.
            begin(shared).end()
            with request.compute() as charge:
                began = time.monotonic()
                charge(0.6 * turns_module.BURST_S)
                # It waits there until its share has made up for the tenth above the burst.
                assert time.monotonic() - began > 0.1 * turns_module.BURST_S
        turn.end()


@pytest.mark.django_db(transaction=True)
def test_an_organization_waits_for_its_own_requests_alone(turns, tenant, other_tenant, api):
    assert api().get("/api-keys").status_code == 200
    holder = begin(turns, tenant.id)
    answers = []
    with running(lambda: answers.append(api().get("/api-keys"))):
        until(lambda: turns.waiting(tenant.id) == 1)
        # It waits without a transaction, and another organization does not wait.
        assert ApiClient(other_tenant.key).get("/api-keys").status_code == 200
        assert answers == []
        holder.end()
    assert answers[0].status_code == 200
    assert turns._free == 2


@pytest.mark.django_db(transaction=True)
def test_a_request_whose_turn_does_not_come_is_refused(turns, tenant, api, monkeypatch):
    assert api().get("/api-keys").status_code == 200
    monkeypatch.setattr(turns_module, "REQUEST_WITHIN_S", 0.01)
    holder = begin(turns, tenant.id)
    refused = api().get("/api-keys")
    assert_problem(refused, 429, "too_many_at_once")
    assert refused["Retry-After"] == "1"
    holder.end()
    assert api().get("/api-keys").status_code == 200
    assert turns._free == 2


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_written_in_the_requests_turn(turns, tenant, api, monkeypatch):
    assert api().get("/api-keys").status_code == 200
    seen = []
    end = RequestTurn.end
    render = "console.base.common.api.renderers.JSONRenderer.render"

    def rendered(*_arguments, **_options):
        seen.append(turns._running[tenant.id])
        return b"{}"

    monkeypatch.setattr(render, rendered)

    def ended(turn):
        seen.append("end")
        end(turn)

    monkeypatch.setattr(RequestTurn, "end", ended)
    assert api().get("/api-keys").content == b"{}"
    assert seen == [1, "end"]


@pytest.mark.django_db(transaction=True)
def test_a_credential_that_is_new_or_wrong_takes_the_turn_of_its_address(turns, tenant, api):
    """Authentication reads the database, so it needs a turn as well."""
    holder = begin(turns, "address:127.0.0.1")
    answers = []
    wrong = ApiClient("fk_wrong_key")
    with running(lambda: answers.append(wrong.get("/api-keys"))):
        until(lambda: turns.waiting("address:127.0.0.1") == 1)
        assert answers == []
        holder.end()
    assert answers[0].status_code == 401
    assert api().get("/api-keys").status_code == 200
    # The organization's key is known now.
    holder = begin(turns, "address:127.0.0.1")
    assert api().get("/api-keys").status_code == 200
    holder.end()


def test_the_credentials_that_were_used_last_are_known(rf):
    keys = TurnKeys(most=2)
    requests = [rf.get("/", headers={"Authorization": f"Bearer fk_{n}"}) for n in range(3)]
    for number, request in enumerate(requests):
        keys.remember(request, f"org_{number}")
    assert [keys.key_of(request) for request in requests] == ["address:127.0.0.1", "org_1", "org_2"]
    keys.remember(rf.get("/"), "org_9")
    assert keys.key_of(rf.get("/")) == "address:127.0.0.1"


def test_beyond_a_burst_a_key_computes_for_its_share_of_the_time_while_others_are_there():
    moments = [0.0]
    share = 0.25
    turns = Turns(8, "Too many.", share_of=lambda _: share, clock=lambda: moments[0])
    used_s = turns_module.BURST_S + 1.0
    for key in ("one", "two"):
        assert turns.take(key, within_s=0.0)
    turns.give_back("one", used_s)
    assert not turns.take("one", within_s=0.0)
    assert turns.take("two", within_s=0.0)
    moments[0] += (used_s - turns_module.BURST_S) / share - 0.1
    assert not turns.take("one", within_s=0.0)
    moments[0] += 0.2
    assert turns.take("one", within_s=0.0)
    turns.give_back("one", used_s)
    # Alone it has all of the time.
    moments[0] += turns_module.PRESENT_S + 1
    assert turns.take("one", within_s=0.0)


def test_what_an_organization_computes_alone_is_not_counted():
    turns = Turns(8, "Too many.", places_per_key=1, share_of=lambda _: 0.25)
    assert turns.take("one", within_s=0.0)
    turns.give_back("one", 10 * turns_module.BURST_S)
    assert turns.take("two", within_s=0.0)
    assert turns.take("one", within_s=0.0)


def test_who_computes_for_long_waits_for_its_next_turn_between_two_steps(turns):
    """A live tail, which no request begins."""
    tail = RequestTurn(turns, key="one")
    order = []

    def ask():
        turn = begin(turns)
        order.append("request")
        turn.end()

    with tail.compute() as charge:
        with running(ask):
            until(lambda: turns.waiting("one") == 1)
            charge(turns_module.COMPUTED_AT_ONCE_S / 2)
            assert (turns.waiting("one"), order) == (1, [])
            charge(turns_module.COMPUTED_AT_ONCE_S)
        order.append("next step")
        assert tail._held
    assert order == ["request", "next step"]
    assert turns._free == 2


def test_what_is_computed_without_a_turn_is_counted(monkeypatch):
    monkeypatch.setattr(turns_module, "REQUEST_WITHIN_S", 0.01)
    turns = Turns(8, "Too many.", places_per_key=1, share_of=lambda _: 0.01)
    assert turns.take("two", within_s=0.0)
    holder = begin(turns)
    with RequestTurn(turns, key="one").compute() as charge:
        charge(turns_module.BURST_S)
    holder.end()
    assert not turns.take("one", within_s=0.0)


def test_who_has_used_up_its_share_is_called_in_time():
    turns = Turns(8, "Too many.", share_of=lambda _: 1.0)
    for key in ("one", "two"):
        assert turns.take(key, within_s=0.0)
    turns.give_back("one", turns_module.BURST_S + 0.2)
    began = time.monotonic()
    assert turns.take("one", within_s=LIMIT_S)
    assert 0.15 < time.monotonic() - began < LIMIT_S / 2
