"""Entries of the access control list."""

import uuid

import pytest

from brokers.errors import UnavailableError
from console.common.conf import config
from provisioning.cells import cluster_store
from tests.console import cases
from tests.provisioning.control.world import failing, lost


@pytest.fixture
def acls(cluster_id):
    return f"/clusters/{cluster_id}/acls"


def entry(name, operation="READ", **fields):
    return {
        "principal": "User:alice",
        "resource_type": "TOPIC",
        "resource_name": name,
        "operation": operation,
        **fields,
    }


class TestAcls(cases.ListCases, cases.CreateCases):
    path = "/clusters/<cluster_id>/acls"
    key = "resource_name"

    @pytest.fixture
    def collection(self, acls):
        return acls

    def body(self):
        return entry(f"t-{uuid.uuid4().hex[:8]}")

    def test_create_refuses_a_key_used_for_another_body(self, owner, collection):
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        assert owner.post(collection, self.body(), headers=headers).status_code == 201
        response = owner.post(collection, self.body(), headers=headers)
        cases.assert_problem(response, 422, "idempotency_key_reused")

    @pytest.mark.parametrize("query", [{"limit": 5_000}, {"limit": 0}])
    def test_list_refuses_bad_pages(self, owner, collection, query):
        document = cases.assert_problem(owner.get(collection, query=query), 422)
        assert document["errors"][0]["pointer"] == "?limit"


def test_entries_are_added_found_and_removed(api, acls):
    given = [entry("a"), entry("a", "WRITE"), entry("b", pattern_type="PREFIXED")]
    made = api().post(acls, {"items": given})
    assert made.status_code == 201
    assert made.json()["items"][0] == {
        **given[0],
        "pattern_type": "LITERAL",
        "permission": "ALLOW",
        "host": "*",
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "true",
                    "reason": "Stored",
                    "message": "Brokers have it as soon as the cluster runs.",
                }
            ]
        },
    }
    found = api().get(acls, query={"resource_name": "a"}).json()["items"]
    assert [each["operation"] for each in found] == ["READ", "WRITE"]
    query = {"resource_name": "a", "operation": "WRITE"}
    gone = api().delete(acls, query=query).json()["items"]
    assert [each["operation"] for each in gone] == ["WRITE"]
    assert len(api().get(acls).json()["items"]) == 2
    gone = api().delete(acls, body={"principal": "User:alice"}).json()["items"]
    assert len(gone) == 2
    assert api().get(acls).json()["items"] == []
    assert api().delete(acls, query=query).json()["items"] == []


def test_an_entry_that_is_there_stays_one(api, acls):
    for _ in range(2):
        assert api().post(acls, entry("a")).status_code == 201
    assert len(api().get(acls).json()["items"]) == 1


def test_without_a_field_nothing_is_removed(api, acls):
    api().post(acls, entry("a"))
    cases.assert_problem(api().delete(acls), 422, "validation_failed")
    assert len(api().get(acls).json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (entry("a", "FLY"), "/operation"),
        (entry("a", principal="alice"), "/principal"),
        (entry("a", resource_type="CLUSTER"), "/resource_name"),
        ({"items": [entry("a"), entry("b", principal="x")]}, "/items/1/principal"),
        ({"items": [entry("a"), {}]}, "/items/1/principal"),
    ],
)
def test_what_cannot_be_is_pointed_to(api, acls, body, pointer):
    document = cases.assert_problem(api().post(acls, body), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer
    assert api().get(acls).json()["items"] == []


def test_the_limit_is_told(api, acls):
    limits = config().limits
    before = limits.acls
    object.__setattr__(limits, "acls", 1)
    try:
        assert api().post(acls, entry("a")).status_code == 201
        assert api().post(acls, entry("a")).status_code == 201
        document = cases.assert_problem(api().post(acls, entry("b")), 403, "limit_reached")
    finally:
        object.__setattr__(limits, "acls", before)
    assert document["quota"] == {"name": "acls", "limit": 1, "used": 1}


@pytest.mark.parametrize("call", ["add_acls", "remove_acls"])
def test_one_lost_answer_is_repeated_and_two_are_told(api, acls, cluster_id, call):
    def change():
        if call == "add_acls":
            return api().post(acls, entry("a"))
        return api().delete(acls, query={"resource_name": "a"})

    api().post(acls, entry("b"))
    if call == "remove_acls":
        api().post(acls, entry("a"))
    with failing(call, UnavailableError("away"), UnavailableError("away")):
        cases.assert_problem(change(), 503, "unavailable")
    with failing(call, lost(UnavailableError("away"))):
        assert change().status_code in {200, 201}
    names = {acl.resource_name for acl in cluster_store(cluster_id).list_acls()}
    assert names == ({"a", "b"} if call == "add_acls" else {"b"})
