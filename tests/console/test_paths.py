"""Names with any characters as parts of paths, and paths that no route matches."""

import asyncio
import json
from io import BytesIO

import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import Client
from django.urls import resolve
from hypothesis import example, given
from hypothesis import strategies as st

from console.asgi import application
from console.base.common.paths import PartedRequest, name_of
from console.programs.cli.client import segment
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient

GROUPS = "/api/v1/clusters/cl_a/groups"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]
NOWHERE = ["/nothing", "/clusters/cl_a/groups/a/b", "/clusters/", "/clusters/UPPER", "/a%0Ab", "//"]


def scope(raw_path, method="GET"):
    """Returns the ASGI scope of a request, as uvicorn makes it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        # Nothing may read this: the server has decoded the slashes of names in it.
        "path": "/decoded",
        "raw_path": raw_path.encode(),
        "query_string": b"a=%25&b=%2F",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


def resolve_group(raw_path):
    """Returns the name of the route that matches a path, and the group that the path names."""
    match = resolve(PartedRequest(scope(raw_path), BytesIO()).path_info)
    return match.url_name, name_of(match.kwargs["group"])


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
@example("a/b")
@example("a/reset-offsets")
@example("reset-offsets")
@example("a%2Fb")
@example("//")
@example("..")
@example("~..")
@example("a\n")
def test_any_name_is_one_part_of_a_path(name):
    path = f"{GROUPS}/{segment(name)}"
    assert resolve_group(path) == ("group-detail", name)
    assert resolve_group(f"{path}/reset-offsets") == ("group-reset-offsets", name)
    assert not path.endswith(("/.", "/.."))


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("%61%2fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("a%zz%", "a%zz%"),
        ("..", ".."),
        ("%2E%2e", ".."),
        ("%7E..", ".."),
        ("~~.", "~."),
        ("~", "~"),
        ("~...", "~..."),
        ("a+b", "a+b"),
    ],
)
def test_other_ways_to_write_a_name_mean_it_too(part, name):
    assert resolve_group(f"{GROUPS}/{part}") == ("group-detail", name)


def test_a_redirect_leads_to_the_same_path():
    for path in ("/clusters/cl_a/groups/a%2Fb", "/a%25b", "/%C3%A9", "/a%252Fb/~.."):
        request = PartedRequest(scope(path), BytesIO())
        assert request.get_full_path() == f"{path}?a=%25&b=%2F"


def test_a_server_that_keeps_no_raw_path_gives_names_without_slashes():
    without_raw_path = {**scope(""), "path": f"{GROUPS}/a%2Fé"}
    del without_raw_path["raw_path"]
    match = resolve(PartedRequest(without_raw_path, BytesIO()).path_info)
    assert name_of(match.kwargs["group"]) == "a%2Fé"


async def answer(raw_path, method):
    """Sends a request to the whole ASGI application; returns status and JSON of the answer."""
    request = ApplicationCommunicator(application, scope(raw_path, method))
    await request.send_input({"type": "http.request", "body": b""})
    start = await request.receive_output(60)
    body = await request.receive_output(60)
    await request.wait(60)
    return start["status"], json.loads(body["body"])


@pytest.mark.parametrize("method", [method for method in METHODS if method != "HEAD"])
def test_a_path_that_leads_nowhere_is_a_problem_of_the_application(method):
    for path in ("/api/v1/nothing", f"{GROUPS}/a/b", "/api", "/api/v1/a%0Ab"):
        status, document = asyncio.run(answer(path, method))
        assert (status, document["code"]) == (404, "not_found")


@pytest.mark.parametrize("method", METHODS)
def test_a_path_that_leads_nowhere_is_absent_for_everybody(method, tenant):
    without_token = signed_in(tenant.owner)
    without_token.csrf_token = ""
    strict = Client(enforce_csrf_checks=True)
    keys = [ApiClient(key, strict) for key in (tenant.key, "fk_x")]
    for client in (without_token, Browser(), *keys):
        for path in NOWHERE:
            response = client.request(method, path, {"a": 1})
            if method == "HEAD":
                assert (response.status_code, response.content) == (404, b"")
            else:
                assert_problem(response, 404, "not_found")
