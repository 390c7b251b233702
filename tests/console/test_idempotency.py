"""A POST with an `Idempotency-Key` is carried out once, even when two arrive at the same time."""

import threading
from datetime import timedelta

import pytest
from django.db import connections

from console.base.accounts.models import ApiKey
from console.base.accounts.services import api_keys
from console.base.common import idempotency, sealing
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.models import IdempotencyRecord
from console.base.common.tenancy import organization_scope, system_scope
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import make_tenant

HEADERS = {"Idempotency-Key": "deploy-42"}
LIMIT_S = 60


def keys_named(tenant, name):
    with organization_scope(tenant.id):
        return ApiKey.objects.filter(name=name).count()


def test_a_repeat_gets_the_same_answer_with_its_secret(api, tenant):
    first = api().post("/api-keys", {"name": "ci"}, headers=HEADERS)
    second = api().post("/api-keys", {"name": "ci"}, headers=HEADERS)
    assert first.json() == second.json()
    assert second["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert second["Content-Type"] == first["Content-Type"]
    assert keys_named(tenant, "ci") == 1


def test_the_stored_answer_does_not_show_the_secret(api, tenant):
    secret = api().post("/api-keys", {"name": "ci"}, headers=HEADERS).json()["secret"]
    with organization_scope(tenant.id):
        record = IdempotencyRecord.objects.get()
    assert secret.encode() not in bytes(record.sealed_answer)
    assert HEADERS["Idempotency-Key"] not in record.pk


def test_keys_of_two_actors_do_not_meet(api, tenant, other_tenant):
    for secret in (tenant.key, tenant.keys["admin"], other_tenant.key):
        response = api(secret).post("/api-keys", {"name": secret[3:9]}, headers=HEADERS)
        assert response.status_code == 201
        assert "Idempotent-Replayed" not in response


def test_a_refused_request_may_be_repeated(api, tenant):
    assert_problem(api().post("/api-keys", {}, headers=HEADERS), 422, "validation_failed")
    assert api().post("/api-keys", {"name": "ci"}, headers=HEADERS).status_code == 201


def test_a_request_that_failed_half_way_may_be_repeated(api, tenant, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(api_keys, "record_audit", lambda **_: 1 / 0)
        response = api().post("/api-keys", {"name": "ci"}, headers=HEADERS)
        assert_problem(response, 500, "internal_error")
    assert keys_named(tenant, "ci") == 0
    assert api().post("/api-keys", {"name": "ci"}, headers=HEADERS).status_code == 201
    assert keys_named(tenant, "ci") == 1


def test_after_a_day_the_key_is_free_again(api, tenant):
    api().post("/api-keys", {"name": "ci"}, headers=HEADERS)
    with organization_scope(tenant.id):
        IdempotencyRecord.objects.update(created_at=now() - timedelta(hours=25))
    response = api().post("/api-keys", {"name": "other"}, headers=HEADERS)
    assert response.status_code == 201
    with system_scope():
        IdempotencyRecord.objects.update(created_at=now() - timedelta(hours=25))
    assert idempotency.purge_expired() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none_is_refused(api, key):
    response = api().post("/api-keys", {"name": "ci"}, headers={"Idempotency-Key": key})
    document = assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/headers/Idempotency-Key"


@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_time_one_is_refused_while_the_other_runs(monkeypatch):
    """The first holds its transaction open until the second has been answered."""
    tenant = make_tenant("Acme")
    inside, answered = threading.Event(), threading.Event()
    answers = {}

    def make_slowly(**arguments):
        inside.set()
        assert answered.wait(LIMIT_S)
        return record_audit(**arguments)

    def first():
        try:
            client = ApiClient(tenant.key)
            answers["first"] = client.post("/api-keys", {"name": "ci"}, headers=HEADERS)
        finally:
            connections.close_all()

    monkeypatch.setattr(api_keys, "record_audit", make_slowly)
    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert inside.wait(LIMIT_S)
        second = ApiClient(tenant.key).post("/api-keys", {"name": "ci"}, headers=HEADERS)
    finally:
        answered.set()
        thread.join(LIMIT_S)
    assert_problem(second, 409, "idempotency_request_in_progress")
    assert second["Retry-After"] == "1"
    assert answers["first"].status_code == 201

    third = ApiClient(tenant.key).post("/api-keys", {"name": "ci"}, headers=HEADERS)
    assert third.json() == answers["first"].json()
    assert keys_named(tenant, "ci") == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_at_the_same_time_exactly_one_happens():
    tenant = make_tenant("Acme")
    start = threading.Barrier(8)
    statuses = []

    def send():
        try:
            client = ApiClient(tenant.key)
            start.wait(LIMIT_S)
            statuses.append(client.post("/api-keys", {"name": "ci"}, headers=HEADERS).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert keys_named(tenant, "ci") == 1


def test_a_sealed_text_opens_with_its_key_only():
    sealed = sealing.seal(b"secret" * 20, "key")
    assert sealing.unseal(sealed, "key") == b"secret" * 20
    assert b"secret" not in sealed
    for broken, key in [(sealed, "kez"), (sealed[:-1] + b"x", "key"), (b"", "key")]:
        with pytest.raises(sealing.SealBroken):
            sealing.unseal(broken, key)
    assert sealing.seal(b"", "key") != sealing.seal(b"", "key")


def test_parts_of_a_digest_do_not_run_into_each_other():
    assert sealing.digest("p", "ab", "c") != sealing.digest("p", "a", "bc")
