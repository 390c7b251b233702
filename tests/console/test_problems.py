"""Every error is a problem document; also ids of requests, locks, identifiers and cursors."""

import base64
import dataclasses
import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync
from celery import current_app
from django.db import OperationalError, connection
from django.test import AsyncClient, RequestFactory
from django.urls import get_resolver
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from console.base.accounts.services import api_keys
from console.base.common import errors, ids, locks
from console.base.common.api import codes, pagination, problems
from console.base.common.conf import config
from console.base.common.requests import client_address
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient


class Inner(serializers.Serializer[Any]):
    count = serializers.IntegerField(min_value=1)


class Outer(serializers.Serializer[Any]):
    name = serializers.CharField()
    configs = serializers.DictField(child=serializers.IntegerField())
    items = serializers.ListField(child=serializers.CharField(max_length=2))
    many = Inner(many=True)  # type: ignore[assignment]


def test_pointers_reach_into_nested_bodies():
    body = {
        "configs": {"a/b~c": "x"},
        "items": ["ok", "long"],
        "many": [{"count": 1}, {"count": 0}, {}],
    }
    serializer = Outer(data=body)
    with pytest.raises(exceptions.ValidationError) as error:
        serializer.is_valid(raise_exception=True)
    converted = problems.as_app_error(error.value)
    assert isinstance(converted, errors.ValidationFailed)
    assert [(field.pointer, field.code) for field in converted.errors] == [
        ("/name", "required"),
        ("/configs/a~1b~0c", "invalid"),
        ("/items/1", "max_length"),
        ("/many/1/count", "min_value"),
        ("/many/2/count", "required"),
    ]


def test_an_error_of_the_whole_body_points_to_it():
    converted = problems.as_app_error(exceptions.ValidationError({"non_field_errors": ["no"]}))
    assert converted is not None
    assert [(field.pointer, field.detail) for field in converted.errors] == [("/", "no")]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (exceptions.ParseError(), 400, "malformed_request"),
        (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
        (exceptions.UnsupportedMediaType("text/plain"), 415, "unsupported_media_type"),
        (exceptions.NotFound(), 404, "not_found"),
        (exceptions.NotAuthenticated(), 401, "not_authenticated"),
        (exceptions.PermissionDenied(), 403, "permission_denied"),
        (OperationalError(), 503, "unavailable"),
        (errors.LimitReached(quota=errors.Quota("x", 1, 1)), 403, "limit_reached"),
    ],
)
def test_known_errors_have_a_status_and_a_code(error, status, code):
    converted = problems.as_app_error(error)
    assert converted is not None
    assert (converted.status, converted.code) == (status, code)


def test_every_error_has_a_code_of_its_own():
    current_app.loader.import_default_modules()
    get_resolver().url_patterns  # noqa: B018 - imports every view, and with it every error
    kinds = [
        subclass for subclass in subclasses(errors.AppError) if subclass.__module__.startswith(OURS)
    ]
    shared = {problems.FrameworkError}  # its code follows from the framework's status
    # A class without a code of its own refines its parent.
    own = [kind for kind in kinds if "code" in vars(kind)]
    codes = [kind.code for kind in own if kind not in shared]
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []
    twice = {code for code in codes if codes.count(code) > 1}
    assert twice == set(), [kind for kind in own if kind.code in twice]
    assert [kind for kind in kinds if not kind.__doc__ or not kind.title] == []


def test_the_list_of_codes_has_every_code():
    current_app.loader.import_default_modules()
    get_resolver().url_patterns  # noqa: B018 - imports every view, and with it every error
    kinds = [
        kind
        for kind in subclasses(errors.AppError)
        if kind.__module__.startswith(OURS) and kind is not problems.FrameworkError
    ]
    listed = codes.problem_codes()
    assert set(listed) == {kind.code for kind in kinds} | set(
        problems.FrameworkError.codes.values()
    )
    assert {(kind.code, kind.status) for kind in kinds} <= {
        (code, status) for code, known in listed.items() for status in known["statuses"]
    }


def subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_an_unforeseen_error_says_nothing_of_itself(api, monkeypatch, caplog):
    def fail(**_):
        message = "the password is secret"
        raise RuntimeError(message)

    monkeypatch.setattr(api_keys, "record_audit", fail)
    response = api().post("/api-keys", {"name": "ci"})
    document = assert_problem(response, 500, "internal_error")
    assert "secret" not in json.dumps(document)
    assert any(record.exc_info for record in caplog.records)


DEEP = "[" * 20_000


def test_a_body_that_is_nested_too_deeply_is_malformed(client):
    response = client.post("/api/v1/signup", DEEP, content_type="application/json")
    assert_problem(response, 400, "malformed_request")


def test_a_cursor_that_is_nested_too_deeply_is_none(api):
    cursor = base64.urlsafe_b64encode(DEEP.encode()).decode()
    assert_problem(api().get("/api-keys", query={"cursor": cursor}), 422, "validation_failed")


def test_a_body_that_is_too_large_is_refused(api, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert_problem(api().post("/api-keys", {"name": "x" * 2000}), 413, "body_too_large")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/api/v1/api-keys", "/api/v1/session", "/api/v1/signup"])
def test_with_the_database_away_the_answer_says_so(client, tmp_path, path):
    connection.close()
    host = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = str(tmp_path)
    client.raise_request_exception = False
    try:
        response = client.get(path)
        over_asgi = async_to_sync(AsyncClient(raise_request_exception=False).get)(path)
        alive = client.get("/healthz")
    finally:
        connection.close()
        connection.settings_dict["HOST"] = host
    document = assert_problem(response, 503, "unavailable")
    assert_problem(over_asgi, 503, "unavailable")
    assert response["Retry-After"] == "5"
    assert str(tmp_path) not in json.dumps(document)
    assert alive.status_code == 200


def test_a_host_that_is_not_ours_is_refused(client):
    assert_problem(client.get("/healthz", headers={"Host": "evil.example"}), 400)


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "kept"), [("trace-0123456", True), ("x", False), ("a b", False)])
def test_a_harmless_id_of_a_request_is_kept(name, kept):
    response = ApiClient().get("/api-keys", headers={"X-Request-Id": name})
    assert (response["X-Request-Id"] == name) is kept
    assert response.json()["request_id"] == response["X-Request-Id"]


@pytest.mark.parametrize(
    ("behind", "forwarded", "expected"),
    [
        (False, "9.9.9.9", "1.2.3.4"),
        (True, "9.9.9.9, 8.8.8.8", "8.8.8.8"),
        (True, "", "1.2.3.4"),
        (True, "9.9.9.9, 8.8.8.8:40001", "8.8.8.8"),
        (True, "2001:db8::1", "2001:db8::1"),
        (True, "[2001:db8::1]:40001", "2001:db8::1"),
        (True, "unknown", "1.2.3.4"),
        (True, "x" * 1000, "1.2.3.4"),
    ],
)
def test_only_a_proxy_of_ours_is_believed(settings, behind, forwarded, expected):
    web = dataclasses.replace(config().web, behind_proxy=behind)
    settings.FRESHET = dataclasses.replace(config(), web=web)
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", REMOTE_ADDR="1.2.3.4", headers=headers)
    assert client_address(request) == expected


def test_identifiers_begin_with_their_kind():
    identifier = ids.new_id("cl")
    assert ids.is_id(identifier, "cl")
    assert not ids.is_id(identifier, "org")
    assert not ids.is_id("cl_x", "cl")
    assert len({ids.new_id("cl") for _ in range(1000)}) == 1000


@pytest.mark.django_db
def test_a_lock_is_taken_once_by_one_transaction():
    assert locks.try_lock("kind", "name")
    assert locks.lock_key("kind", "name") != locks.lock_key("kindn", "ame")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        assert cursor.fetchone()[0] >= 1


@pytest.mark.django_db(transaction=True)
def test_a_lock_needs_a_transaction_to_end_with():
    with pytest.raises(RuntimeError, match="there is none"):
        locks.try_lock("kind", "name")


NO_CURSORS = ["x", "W10", "WyJhIiwiYiJd", "bnVsbA", "é", "WyJcdTAwMDAiXQ", "WyJcdWQ4MDAiXQ"]
OURS = ("console.", "provisioning.", "metering.", "billing.")


def request_with(**query):
    return cast("Request", SimpleNamespace(query_params=query))


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_of_a_sequence_repeat_and_hide_nothing(limit):
    names = [f"topic-{number:02}" for number in range(7)]
    seen, cursor = [], None
    while True:
        request = request_with(limit=str(limit), **({"cursor": cursor} if cursor else {}))
        page, cursor = pagination.page_of(request, names[::-1], key=str)
        seen += page
        if cursor is None:
            break
    assert seen == names


@pytest.mark.parametrize("cursor", NO_CURSORS)
def test_a_cursor_that_no_list_gave_is_refused(cursor):
    with pytest.raises(errors.ValidationFailed):
        pagination.read_cursor(request_with(cursor=cursor), 1)


def test_a_cursor_with_another_kind_of_value_is_refused(api):
    cursor = pagination.write_cursor(["not a time", "key_x"])
    document = assert_problem(api().get("/api-keys", query={"cursor": cursor}), 422)
    assert document["errors"][0]["pointer"] == "?cursor"
