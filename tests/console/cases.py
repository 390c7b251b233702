"""Test cases to inherit: a resource supplies data, and gets the tests that every resource passes.

A subclass is named `Test…`, sets `path`, overrides the fixtures `collection` and `item` if these
need something else first, and combines the cases that apply:

    class TestApiKeys(cases.ListCases, cases.CreateCases, cases.DestroyCases):
        path = "/api-keys"
        create_body = {"name": "deploy"}
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from console.base.common.actor import Role
from console.base.common.ids import is_id
from tests.console.clients import ApiClient
from tests.console.factories import Tenant
from tests.console.queries import assert_baseline, count_queries


def assert_problem(response: Any, status: int, code: str | None = None) -> dict[str, Any]:
    """Asserts that a response is an RFC 9457 problem of ours; returns its document."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert {"type", "title", "status", "detail", "code", "request_id"} <= set(document)
    assert document["status"] == status
    assert document["request_id"] == response["X-Request-Id"]
    if code is not None:
        assert document["code"] == code, document
    return document


class ResourceCases:
    """The attributes and fixtures that all cases use."""

    # The collection's path below `/api/v1`. That of a nested resource has `{…}` for its parent,
    # which an override of `collection` fills in.
    path: str
    # The member of an item that is the last part of its path.
    key = "id"
    # A role that may change the resource, and one that may only read it.
    writer = Role.OWNER
    reader = Role.VIEWER

    @pytest.fixture
    def owner(self, tenant: Tenant) -> ApiClient:
        """A client of the organization under test, with the role `writer`."""
        return ApiClient(tenant.keys[self.writer])

    @pytest.fixture
    def other_client(self, other_tenant: Tenant) -> ApiClient:
        """A client of another organization."""
        return ApiClient(other_tenant.key)

    @pytest.fixture
    def collection(self, tenant: Tenant) -> str:
        """The path of the collection. A nested resource overrides it to make its parent."""
        return self.path

    @pytest.fixture
    def item(self, tenant: Tenant, owner: ApiClient, collection: str) -> dict[str, Any]:
        """An item as the API shows it. A POST makes it, unless a subclass overrides this."""
        response = owner.post(collection, self.body())
        assert response.status_code == 201, response.content
        created: dict[str, Any] = response.json()
        return created

    @pytest.fixture
    def item_path(self, collection: str, item: dict[str, Any]) -> str:
        """The path of `item`."""
        return f"{collection}/{item[self.key]}"

    def body(self) -> dict[str, Any]:
        """Returns the body of a POST that succeeds. Override it if each one needs its own name."""
        return dict(getattr(self, "create_body"))  # noqa: B009


class ListCases(ResourceCases):
    """`GET` of the collection."""

    def test_list_shows_items_in_pages(self, owner: ApiClient, collection: str, item: Any) -> None:
        response = owner.get(collection)
        assert response.status_code == 200
        assert set(response.json()) == {"items", "next_cursor"}
        assert item[self.key] in [shown[self.key] for shown in response.json()["items"]]

    def test_list_pages_repeat_and_hide_nothing(
        self, owner: ApiClient, collection: str, item: Any
    ) -> None:
        for _ in range(2):
            assert owner.post(collection, self.body()).status_code == 201
        everything = [shown[self.key] for shown in owner.get(collection).json()["items"]]
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = owner.get(collection, query={"limit": 1, "cursor": cursor}).json()
            seen += [shown[self.key] for shown in page["items"]]
            cursor = page["next_cursor"]
        assert seen == everything
        assert len(set(seen)) >= 3

    @pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1000}, {"cursor": "?"}])
    def test_list_refuses_bad_pages(self, owner: ApiClient, collection: str, query: Any) -> None:
        document = assert_problem(owner.get(collection, query=query), 422, "validation_failed")
        assert document["errors"][0]["pointer"] == f"?{next(iter(query))}"

    def test_list_costs_as_many_queries_as_it_did(
        self, owner: ApiClient, collection: str, item: Any
    ) -> None:
        """The number must not grow with the number of items, nor differ from the baseline."""
        few = count_queries(lambda: owner.get(collection))
        assert owner.post(collection, self.body()).status_code in {201, 202}
        assert_baseline(self.path, few, count_queries(lambda: owner.get(collection)))

    def test_list_is_closed_to_the_anonymous(self, collection: str) -> None:
        assert_problem(ApiClient().get(collection), 401, "not_authenticated")

    def test_list_is_open_to_a_reader(self, tenant: Tenant, collection: str) -> None:
        assert ApiClient(tenant.keys[self.reader]).get(collection).status_code == 200

    def test_list_shows_nothing_of_another_tenant(
        self, other_client: ApiClient, collection: str, item: Any
    ) -> None:
        response = other_client.get(collection)
        if response.status_code == 404:  # its parent belongs to the other tenant
            assert_problem(response, 404, "not_found")
        else:
            assert item[self.key] not in [shown[self.key] for shown in response.json()["items"]]


class RetrieveCases(ResourceCases):
    """`GET` of one item."""

    def test_retrieve_shows_the_item(
        self, owner: ApiClient, item_path: str, item: dict[str, Any]
    ) -> None:
        response = owner.get(item_path)
        assert response.status_code == 200
        assert response.json()[self.key] == item[self.key]

    def test_retrieve_has_an_etag(self, owner: ApiClient, item_path: str) -> None:
        response = owner.get(item_path)
        if "generation" in response.json():
            assert response["ETag"] == f'"{response.json()["generation"]}"'
        else:
            assert "ETag" not in response

    def test_another_tenants_item_looks_absent(
        self, other_client: ApiClient, owner: ApiClient, item_path: str, item: dict[str, Any]
    ) -> None:
        foreign = assert_problem(other_client.get(item_path), 404, "not_found")
        name = str(item[self.key])
        absent_path = item_path.removesuffix(name) + name[:-4] + "zzzz"
        absent = assert_problem(owner.get(absent_path), 404, "not_found")
        assert {**foreign, "request_id": ""} == {**absent, "request_id": ""}

    def test_retrieve_is_closed_to_the_anonymous(self, item_path: str) -> None:
        assert_problem(ApiClient().get(item_path), 401, "not_authenticated")


class CreateCases(ResourceCases):
    """`POST` to the collection."""

    def test_create_answers_the_item_and_its_place(self, owner: ApiClient, collection: str) -> None:
        response = owner.post(collection, self.body())
        assert response.status_code in {201, 202}, response.content
        if response.status_code == 202:
            assert is_id(response.json()["id"], "op")

    def test_create_happens_once_for_one_idempotency_key(
        self, owner: ApiClient, collection: str
    ) -> None:
        body, headers = self.body(), {"Idempotency-Key": uuid.uuid4().hex}
        first = owner.post(collection, body, headers=headers)
        second = owner.post(collection, body, headers=headers)
        assert first.status_code in {201, 202}
        assert (second.status_code, second.json()) == (first.status_code, first.json())
        assert second["Idempotent-Replayed"] == "true"

    def test_create_refuses_a_key_used_for_another_body(
        self, owner: ApiClient, collection: str
    ) -> None:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        assert owner.post(collection, self.body(), headers=headers).status_code in {201, 202}
        other = {**self.body(), "name": "another"}
        response = owner.post(collection, other, headers=headers)
        assert_problem(response, 422, "idempotency_key_reused")

    def test_create_points_to_what_is_missing(self, owner: ApiClient, collection: str) -> None:
        document = assert_problem(owner.post(collection, {}), 422, "validation_failed")
        assert all(error["pointer"].startswith("/") for error in document["errors"])

    def test_create_refuses_what_is_not_json(self, owner: ApiClient, collection: str) -> None:
        headers = {"Authorization": f"Bearer {owner.key}"}
        response = owner.client.post(
            f"/api/v1{collection}", b"{", content_type="application/json", headers=headers
        )
        assert_problem(response, 400, "malformed_request")

    def test_create_is_closed_to_the_anonymous(self, collection: str) -> None:
        assert_problem(ApiClient().post(collection, self.body()), 401, "not_authenticated")

    def test_create_is_closed_to_a_reader(self, tenant: Tenant, collection: str) -> None:
        reader = ApiClient(tenant.keys[self.reader])
        assert_problem(reader.post(collection, self.body()), 403, "permission_denied")


class UpdateCases(ResourceCases):
    """`PATCH` of one item with `update_body`."""

    update_body: dict[str, Any]

    def test_update_changes_what_it_names(self, owner: ApiClient, item_path: str) -> None:
        response = owner.patch(item_path, self.update_body)
        assert response.status_code in {200, 202}, response.content
        shown = owner.get(item_path).json()
        assert {name: shown[name] for name in self.update_body} == self.update_body

    def test_update_refuses_a_stale_etag(self, owner: ApiClient, item_path: str) -> None:
        tag = owner.get(item_path)["ETag"]
        first = owner.patch(item_path, self.update_body, headers={"If-Match": tag})
        assert first.status_code in {200, 202}
        second = owner.patch(item_path, self.update_body, headers={"If-Match": '"0"'})
        assert_problem(second, 412, "precondition_failed")

    def test_update_of_another_tenants_item_looks_absent(
        self, other_client: ApiClient, item_path: str
    ) -> None:
        assert_problem(other_client.patch(item_path, self.update_body), 404, "not_found")

    def test_update_is_closed_to_a_reader(self, tenant: Tenant, item_path: str) -> None:
        reader = ApiClient(tenant.keys[self.reader])
        assert_problem(reader.patch(item_path, self.update_body), 403, "permission_denied")


class DestroyCases(ResourceCases):
    """`DELETE` of one item."""

    def test_destroy_is_accepted(self, owner: ApiClient, item_path: str) -> None:
        assert owner.delete(item_path).status_code in {202, 204}

    def test_destroy_of_another_tenants_item_looks_absent(
        self, other_client: ApiClient, item_path: str
    ) -> None:
        assert_problem(other_client.delete(item_path), 404, "not_found")

    def test_destroy_is_closed_to_a_reader(self, tenant: Tenant, item_path: str) -> None:
        reader = ApiClient(tenant.keys[self.reader])
        assert_problem(reader.delete(item_path), 403, "permission_denied")
