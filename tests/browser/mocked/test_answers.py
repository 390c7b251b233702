"""The answers of which pages are made are those that the API describes."""

import pytest

from tests.browser.mocked.answers import (
    CLUSTER,
    GROUP,
    INVOICE,
    MADE,
    TOPIC,
    USAGE_ROW,
    Answer,
    Request,
    answer_to,
    complaints,
    description,
    operation_of,
    operations,
)

FROM = {"from": "2026-11-21T15:00:00.000Z", "to": "2026-11-21T16:00:00.000Z"}
IN_PATH = {"cluster_id": CLUSTER, "group": GROUP, "topic": TOPIC, "name": TOPIC, "id": "x_1"}


def address_of(operation):
    """An address of an operation, with the examples' names in it."""
    return operation.path.format(**IN_PATH)


def test_every_operation_is_answered_as_it_is_described():
    assert len(operations()) > 100
    for _, operation in operations():
        path = address_of(operation)
        assert operation_of(operation.method, path) is operation, path
        for signed_in in (True, False):
            answer = answer_to(Request(operation.method, path, FROM, signed_in))
            assert answer.status == operation.success
            assert list(complaints(operation, answer)) == []


@pytest.mark.parametrize("by", ["none", "cluster", "topic", "principal", "meter"])
def test_usage_is_of_the_range_that_is_asked_for(by):
    query = FROM | {"group_by": by, "meter": "egress_bytes"}
    answer = answer_to(Request("GET", "/api/v1/usage", query))
    operation = operation_of("GET", "/api/v1/usage")
    assert operation is not None
    assert list(complaints(operation, answer)) == []
    assert answer.body["items"][0]["window_start"] == "2026-11-21T15:00:00Z"
    assert {item["meter"] for item in answer.body["items"]} == {"egress_bytes"}
    assert all((item["id"] is None) == (by != "none") for item in answer.body["items"])


def test_what_is_made_is_of_operations_that_there_are():
    assert set(MADE) <= {operation.name for _, operation in operations()}


def test_the_ids_that_pages_name_are_the_examples():
    shown = str(description()["paths"])
    assert [name for name in (CLUSTER, GROUP, INVOICE, TOPIC, USAGE_ROW) if name not in shown] == []


def test_another_shape_is_a_complaint():
    operation = operation_of("GET", "/api/v1/clusters")
    assert operation is not None
    body = operation.example
    body["items"][0]["status"]["phase"] = "dancing"
    assert list(complaints(operation, Answer(operation.success, body)))
    assert list(complaints(operation, Answer(operation.success, {"items": []})))


def test_what_the_api_does_not_have_is_not_answered():
    assert answer_to(Request("GET", "/api/v1/clusterz")).status == 501
    absent = answer_to(Request("GET", "/api/v1/clusters/cl_" + "a" * 20))
    operation = operation_of("GET", "/api/v1/clusters/cl_1")
    assert operation is not None
    assert (absent.status, list(complaints(operation, absent))) == (404, [])


def test_an_action_is_not_an_id():
    for method, path in (
        ("POST", "/api/v1/invitations/accept"),
        ("POST", f"/api/v1/clusters/{CLUSTER}:wake"),
        ("POST", f"/api/v1/clusters/{CLUSTER}/acls:batch"),
        ("GET", "/api/v1/organizations/current/export"),
    ):
        operation = operation_of(method, path)
        assert operation is not None
        assert (
            operation.path.removeprefix("/api/v1/").split("/")[-1].split(":")[-1]
            == (path.split("/")[-1].split(":")[-1])
        )
