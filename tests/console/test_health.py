"""`/healthz` and `/readyz`."""

import threading

import pytest
from django.db import connection
from django.test import Client

from console.base.common import health
from console.base.common.conf import config
from console.web import checks


@pytest.fixture
def parts(monkeypatch):
    """An empty registry of checks in place of the real one."""
    registered: dict[str, health.Check] = {}
    monkeypatch.setattr(health, "_checks", registered)
    return registered


def test_healthz_asks_nothing_of_the_database(client):
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert "no-store" in response["Cache-Control"]


def test_readyz_names_each_part(client, parts):
    health.register_check("one", lambda: None)
    health.register_check("other", lambda: None)
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "parts": {
            "one": {"ready": True, "message": ""},
            "other": {"ready": True, "message": ""},
        },
    }


def test_readyz_says_which_part_is_away_and_no_more(client, parts):
    def fail():
        message = "password=secret"
        raise ConnectionError(message)

    health.register_check("one", lambda: None)
    health.register_check("other", fail)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["ready"] is False
    assert response.json()["parts"]["one"]["ready"] is True
    assert response.json()["parts"]["other"] == {"ready": False, "message": "ConnectionError"}
    assert b"secret" not in response.content


def test_a_part_that_hangs_does_not_hang_the_answer(parts):
    ended = threading.Event()

    def wait_for_end():
        ended.wait(60)

    health.register_check("stuck", wait_for_end)
    try:
        (stuck,) = health.check_parts(timeout_s=0.2)
    finally:
        ended.set()
    assert not stuck.ready
    assert stuck.message == "no answer within 0.2 s"


def test_the_parts_of_every_installation_are_registered():
    assert {"database", "migrations", "queue"} <= set(health._checks)


@pytest.mark.django_db(transaction=True)
def test_with_all_of_it_there_the_service_is_ready():
    """The tests' queue is in memory, which accepts every connection."""
    ours = {"database", "migrations", "queue"}
    parts = health.check_parts(timeout_s=30)
    assert {part.name: part.message for part in parts if part.name in ours} == dict.fromkeys(
        ours, ""
    )


@pytest.mark.django_db
def test_a_missing_migration_is_noticed(monkeypatch):
    checks.check_migrations()

    class Behind:
        def __init__(self, _):
            self.loader = self.graph = self

        def leaf_nodes(self):
            return []

        def migration_plan(self, _):
            return ["one"]

    monkeypatch.setattr(checks, "MigrationExecutor", Behind)
    with pytest.raises(checks.MigrationsMissing):
        checks.check_migrations()


@pytest.mark.django_db
def test_the_tests_serve_as_the_application_does():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (config().database.app_user,)


def test_probes_may_only_look():
    for address in ("/healthz", "/readyz"):
        assert Client(enforce_csrf_checks=True).post(address).status_code == 405
