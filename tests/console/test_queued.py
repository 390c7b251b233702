"""Tasks that wait for their organization's turn: who is next, what runs at a time, what is lost."""

import threading
from datetime import timedelta

import pytest
from celery import current_app, shared_task
from django.db import connections
from kombu.exceptions import OperationalError

from console.base.common import outbox, queued
from console.base.common.clock import now
from console.base.common.models import OutboxEntry, TaskTurn, WaitingTask
from console.base.common.requests import current_request_id, in_request
from console.base.common.tenancy import organization_scope, system_scope

GREEDY, OTHER, MODEST = ("org_" + letter * 20 for letter in "abc")
LIMIT_S = 60
TASK = "tests.look_at"

pytestmark = pytest.mark.django_db(transaction=True)


class Worker:
    """What the tasks of a test saw, and the messages that Celery's broker got."""

    def __init__(self):
        self.seen = []
        self.messages = []
        self.away = False
        # What a task does besides; returns after how many seconds it is to be done again.
        self.work = lambda _thing: None

    def send_task(self, name, *, retry, countdown=None, **_):
        assert retry is False
        if self.away:
            raise OperationalError
        self.messages.append((name, countdown))

    def do(self, thing):
        self.seen.append(thing)
        return self.work(thing)

    def drain(self):
        """Does what the messages so far, and those that come of it, are for."""
        while self.messages:
            self.messages.pop(0)
            queued.run_waiting(message=f"message-{len(self.seen)}-{len(self.messages)}")


@pytest.fixture
def worker(monkeypatch):
    made = Worker()
    monkeypatch.setattr(queued, "WAIT_IN_TURNS", {TASK})
    monkeypatch.setattr(current_app, "send_task", made.send_task)

    @shared_task(name=TASK)
    def look_at(thing):
        return made.do(thing)

    yield made
    current_app.tasks.pop(TASK)


def enqueue(organization_id, thing):
    with organization_scope(organization_id):
        outbox.enqueue_task(task=TASK, organization_id=organization_id, arguments={"thing": thing})


def waiting():
    with system_scope():
        return sorted(task.arguments["thing"] for task in WaitingTask.objects.all())


def make_due(**fields):
    with system_scope():
        WaitingTask.objects.update(due_at=now() - timedelta(seconds=60), **fields)


def test_an_organization_with_many_tasks_takes_turns_with_the_others(worker):
    for number in range(20):
        enqueue(GREEDY, f"greedy-{number:02}")
    enqueue(OTHER, "other-1")
    enqueue(MODEST, "modest")
    enqueue(OTHER, "other-2")
    # However many wait, one message is on its way for each organization.
    assert len(worker.messages) == 3
    worker.drain()
    # The first one is of whoever came first; nobody else waits for a second one of theirs.
    assert worker.seen[:3] == ["greedy-00", "other-1", "modest"]
    assert worker.seen.index("other-2") == 4
    assert [thing for thing in worker.seen if "greedy" in thing] == [
        f"greedy-{number:02}" for number in range(20)
    ]
    assert waiting() == []
    with system_scope():
        assert not OutboxEntry.objects.exists()


def test_a_turn_long_ago_comes_before_a_recent_one(worker):
    enqueue(GREEDY, "first")
    worker.drain()
    enqueue(GREEDY, "second")
    enqueue(OTHER, "other")
    worker.drain()
    assert worker.seen == ["first", "other", "second"]


def test_the_same_task_waits_once(worker):
    for _ in range(5):
        enqueue(GREEDY, "same")
    assert waiting() == ["same"]
    assert len(worker.messages) == 1
    worker.drain()
    assert worker.seen == ["same"]


def test_one_that_is_asked_for_while_it_runs_is_done_once_more(worker):
    def ask_again(_thing):
        if len(worker.seen) == 1:
            enqueue(GREEDY, "same")

    worker.work = ask_again
    enqueue(GREEDY, "same")
    worker.drain()
    assert worker.seen == ["same", "same"]
    assert waiting() == []


def test_of_one_organization_so_many_run_at_a_time(worker):
    inside, release = threading.Event(), threading.Event()

    def hold(thing):
        if thing == "held":
            inside.set()
            assert release.wait(LIMIT_S)

    worker.work = hold
    enqueue(GREEDY, "held")
    thread = threading.Thread(target=in_thread, args=[lambda: queued.run_waiting(message="one")])
    thread.start()
    try:
        assert inside.wait(LIMIT_S)
        worker.messages.clear()
        enqueue(GREEDY, "behind")
        # A worker that looks now has nothing to do for it, and no message says so.
        assert worker.messages == []
        assert not queued.run_waiting(message="two")
        enqueue(MODEST, "modest")
        worker.drain()
        assert worker.seen == ["held", "modest"]
    finally:
        release.set()
        thread.join(LIMIT_S)
    # The end of the one sends the message for the next one.
    assert worker.messages == [(queued.NEXT_TASK, None)]
    worker.drain()
    assert worker.seen[-1] == "behind"


def in_thread(work):
    try:
        work()
    finally:
        connections.close_all()


def test_a_task_that_goes_on_later_waits_until_then(worker):
    worker.work = lambda _thing: 120.0 if len(worker.seen) == 1 else None
    enqueue(GREEDY, "long")
    assert queued.run_waiting(message="one")
    assert worker.messages[-1] == (queued.NEXT_TASK, 120.0)
    assert not queued.run_waiting(message="two")
    # Asked for meanwhile, it is due at once.
    worker.messages.clear()
    enqueue(GREEDY, "long")
    assert worker.messages == [(queued.NEXT_TASK, None)]
    worker.drain()
    assert worker.seen == ["long", "long"]
    assert waiting() == []


def test_the_message_of_a_killed_worker_brings_its_task_back(worker):
    def die(_thing):
        raise KeyboardInterrupt

    worker.work = die
    enqueue(GREEDY, "x")
    with pytest.MonkeyPatch.context() as patch:
        # It was killed, so it ended nothing.
        patch.setattr(queued, "_finish", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            queued.run_waiting(message="lost")
    worker.work = lambda _thing: None
    assert not queued.run_waiting(message="another")
    assert queued.run_waiting(message="lost")
    assert worker.seen == ["x", "x"]
    assert waiting() == []


def test_a_worker_that_hangs_has_a_task_for_some_time_only(worker):
    enqueue(GREEDY, "x")
    taken = queued._take_next("hangs")
    make_due(taken_until=now() - timedelta(seconds=1))
    worker.messages.clear()
    assert queued.sweep_waiting() == 1
    worker.drain()
    assert worker.seen == ["x"]
    # What the first one does in the end changes nothing.
    enqueue(GREEDY, "x")
    assert taken is not None
    queued._finish(taken, None)
    assert waiting() == ["x"]


def test_the_sweep_sends_lost_messages_one_for_an_organization(worker):
    for number in range(3):
        enqueue(GREEDY, f"x{number}")
    enqueue(OTHER, "y")
    worker.messages.clear()
    # Fresh ones have their messages yet.
    assert queued.sweep_waiting() == 0
    make_due()
    assert queued.sweep_waiting() == 2
    worker.drain()
    assert sorted(worker.seen) == ["x0", "x1", "x2", "y"]


def test_while_the_broker_is_away_tasks_wait(worker):
    worker.away = True
    enqueue(GREEDY, "x")
    make_due()
    assert queued.sweep_waiting() == 0
    assert waiting() == ["x"]
    worker.away = False
    assert queued.sweep_waiting() == 1
    worker.drain()
    assert worker.seen == ["x"]


def test_a_task_that_fails_is_not_repeated_and_the_next_one_comes(worker):
    def fail(thing):
        if thing == "bad":
            raise ValueError(thing)

    worker.work = fail
    enqueue(GREEDY, "bad")
    enqueue(GREEDY, "good")
    with pytest.raises(ValueError, match="bad"):
        queued.run_waiting(message="one")
    assert waiting() == ["good"]
    worker.drain()
    assert worker.seen == ["bad", "good"]


def test_a_task_has_the_id_of_its_request(worker):
    ids = []
    worker.work = lambda _thing: ids.append(current_request_id())
    with in_request("req-from-a-caller"):
        enqueue(GREEDY, "x")
    worker.drain()
    assert ids == ["req-from-a-caller"]


def test_turns_of_long_ago_are_forgotten(worker):
    enqueue(GREEDY, "x")
    worker.drain()
    with system_scope():
        TaskTurn.objects.update(last_at=now() - queued.TURN_KEPT - timedelta(seconds=1))
    queued.sweep_waiting()
    with system_scope():
        assert not TaskTurn.objects.exists()
