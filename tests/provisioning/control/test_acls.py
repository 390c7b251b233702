"""Entries of the access control list."""

import uuid

import pytest

from brokers.errors import UnavailableError
from console.base.common.conf import config
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
    entries = [entry("a"), entry("a", "WRITE"), entry("b", pattern_type="PREFIXED")]
    made = api().post(acls, {"items": entries})
    assert made.status_code == 201
    assert made.json()["items"][0] == {
        "id": made.json()["items"][0]["id"],
        **entries[0],
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
    matches = api().get(acls, query={"resource_name": "a"}).json()["items"]
    assert [item["operation"] for item in matches] == ["READ", "WRITE"]
    query = {"resource_name": "a", "operation": "WRITE"}
    removed = api().delete(acls, query=query).json()["items"]
    assert [item["operation"] for item in removed] == ["WRITE"]
    assert len(api().get(acls).json()["items"]) == 2
    removed = api().delete(acls, body={"principal": "User:alice"}).json()["items"]
    assert len(removed) == 2
    assert api().get(acls).json()["items"] == []
    assert api().delete(acls, query=query).json()["items"] == []


def test_names_are_kept_as_they_are_given(api, acls, store, path):
    """Kafka's clients know `"g "` as another name than `"g"`."""
    spaced = {"principal": "User: a ", "resource_name": " g ", "host": "*"}
    made = api().post(acls, {**entry("g"), "resource_type": "GROUP", **spaced})
    assert made.status_code == 201, made.content
    (kept,) = store.list_acls()
    assert (kept.principal, kept.resource_name) == ("User: a ", " g ")
    assert made.json().items() >= spaced.items()
    assert api().get(acls, query={"resource_name": "g"}).json()["items"] == []
    assert len(api().get(acls, query={"resource_name": " g "}).json()["items"]) == 1
    assert api().delete(acls, query={"resource_name": "g"}).json()["items"] == []
    quota = {"client_id": " c ", "produce_bytes_per_second": 1}
    assert api().request("PUT", f"{path}/quotas", quota).status_code in {200, 201}
    assert [shown.entity.client_id for shown in store.quotas()] == [" c "]
    # A name that no topic can have is refused, not changed.
    refused = api().post(f"{path}/topics", {"name": " t "})
    assert refused.status_code == 422, refused.content
    assert store.topics() == []


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


def test_the_limit_is_shown(api, acls):
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
def test_one_lost_answer_is_repeated_and_two_are_an_error(api, acls, cluster_id, call):
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


def test_an_entry_has_one_id_wherever_it_is_shown(api, acls, cluster_id):
    made = api().post(acls, entry("a")).json()
    again = api().post(acls, entry("a")).json()
    (listed,) = api().get(acls).json()["items"]
    path = f"{acls}/{made['id']}"
    assert made["id"] == again["id"] == listed["id"]
    assert api().get(path).json() == listed
    other = api().post(acls, entry("a", permission="DENY")).json()
    assert other["id"] != made["id"]
    assert api().delete(path).status_code == 204
    cases.assert_problem(api().get(path), 404, "not_found")
    cases.assert_problem(api().delete(path), 404, "not_found")
    assert [acl.permission for acl in cluster_store(cluster_id).list_acls()] == ["DENY"]


def test_a_batch_is_added_whole_or_not_at_all(api, acls):
    items = [entry(f"t-{n:03}") for n in range(500)]
    made = api().post(f"{acls}:batch", {"items": items})
    assert (made.status_code, len(made.json()["items"])) == (201, 500)
    assert len(api().get(acls, query={"limit": 2_000}).json()["items"]) == 500
    bad = {"items": [entry("new"), entry("bad", principal="x")]}
    document = cases.assert_problem(api().post(f"{acls}:batch", bad), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/items/1/principal"
    for items in ([], [entry("t")] * 501):
        cases.assert_problem(api().post(f"{acls}:batch", {"items": items}), 422)
    assert len(api().get(acls, query={"limit": 2_000}).json()["items"]) == 500


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (
            {"template": "producer"},
            {("TOPIC", "orders", "LITERAL", "WRITE"), ("TOPIC", "orders", "LITERAL", "DESCRIBE")},
        ),
        (
            {"template": "producer", "transactional_id": "tx", "pattern_type": "PREFIXED"},
            {
                ("TOPIC", "orders", "PREFIXED", "WRITE"),
                ("TOPIC", "orders", "PREFIXED", "DESCRIBE"),
                ("TRANSACTIONAL_ID", "tx", "LITERAL", "WRITE"),
                ("TRANSACTIONAL_ID", "tx", "LITERAL", "DESCRIBE"),
            },
        ),
        (
            {"template": "consumer", "group": "g"},
            {
                ("TOPIC", "orders", "LITERAL", "READ"),
                ("TOPIC", "orders", "LITERAL", "DESCRIBE"),
                ("GROUP", "g", "LITERAL", "READ"),
            },
        ),
        (
            {"template": "streams", "group": "app"},
            {
                ("TOPIC", "orders", "LITERAL", "READ"),
                ("TOPIC", "orders", "LITERAL", "WRITE"),
                ("TOPIC", "orders", "LITERAL", "DESCRIBE"),
                ("TOPIC", "app", "PREFIXED", "ALL"),
                ("GROUP", "app", "PREFIXED", "ALL"),
                ("TRANSACTIONAL_ID", "app", "PREFIXED", "ALL"),
            },
        ),
    ],
)
def test_templates_give_what_an_application_needs(api, acls, parameters, expected):
    body = {"principal": "User:alice", "topic": "orders", **parameters}
    path = f"{acls}:apply-template"
    shown = api().post(path, body, query={"validate_only": "true"}).json()
    assert shown["valid"]
    assert api().get(acls).json()["items"] == []
    made = api().post(path, body)
    assert made.status_code == 201
    names = ("resource_type", "resource_name", "pattern_type", "operation")
    for items in (shown["items"], made.json()["items"], api().get(acls).json()["items"]):
        assert {tuple(item[name] for name in names) for item in items} == expected
        assert {item["principal"] for item in items} == {"User:alice"}


def test_what_a_template_needs_is_pointed_to(api, acls):
    templates = {item["template"]: item for item in api().get("/acl-templates").json()["items"]}
    assert set(templates) == {"producer", "consumer", "streams"}
    body = {"template": "consumer", "principal": "User:alice", "topic": "orders"}
    document = cases.assert_problem(api().post(f"{acls}:apply-template", body), 422)
    assert [error["pointer"] for error in document["errors"]] == ["/group"]
    assert templates["consumer"]["needs"] == ["group"]


def test_validate_only_adds_no_entry(api, acls):
    query = {"validate_only": "true"}
    assert api().post(acls, entry("a"), query=query).json()["valid"]
    assert api().post(f"{acls}:batch", {"items": [entry("a")]}, query=query).status_code == 200
    cases.assert_problem(api().post(acls, entry("a", principal="x"), query=query), 422)
    assert api().get(acls).json()["items"] == []
