"""The console's files and its single page, and the headers of their answers."""

import dataclasses

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from console.base.common.conf import config
from tests.console.cases import assert_problem

SCRIPT = "assets/index-AbC123_x.js"


@pytest.fixture
def built(tmp_path, settings):
    """A folder with a build of the console, as Vite makes it."""
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Freshet</title>")
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / SCRIPT).write_text("export {}")
    console = dataclasses.replace(config().console, folder=folder)
    settings.FRESHET = dataclasses.replace(config(), console=console)
    return folder


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/sign-in", "/clusters/cl_x/topics/a.b", "/verify?token=x"),
        *("/clusters/cl_x/groups/a%2Fb", "/clusters/cl_x/groups/a%0Ab"),
    ],
)
def test_every_address_of_the_console_is_its_page(client, built, path):
    response = client.get(path)
    assert response.status_code == 200
    assert b"<title>Freshet</title>" in response.content
    assert response["Cache-Control"] == "no-store"
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_file_with_a_hashed_name_may_be_kept_for_ever(client, built):
    response = client.get(f"/{SCRIPT}")
    assert response.content == b"export {}"
    assert "javascript" in response["Content-Type"]
    assert "immutable" in response["Cache-Control"]
    assert "Access-Control-Allow-Origin" not in response


def test_another_file_is_kept_for_a_minute(client, built):
    response = client.get("/favicon.svg")
    assert response["Content-Type"].startswith("image/svg+xml")
    assert response["Cache-Control"] == "max-age=60, public"
    again = client.get("/favicon.svg", headers={"If-Modified-Since": response["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_file_of_an_older_build_is_absent_and_no_page(client, built):
    response = client.get("/assets/index-00000000.js")
    assert (response.status_code, response.content) == (404, b"")


@pytest.mark.parametrize("path", ["/../settings.toml", "/assets/../../x", "/%2e%2e/x", "/.git"])
def test_nothing_outside_of_the_build_is_served(client, built, path):
    (built.parent / "settings.toml").write_text("secret")
    assert b"secret" not in client.get(path).content


def test_a_new_build_is_served_without_a_restart(client, built):
    assert client.get("/assets/late-AbC123_y.js").status_code == 404
    (built / "assets" / "late-AbC123_y.js").write_text("late")
    index = built / "index.html"
    index.write_text("<title>new</title>")
    assert client.get("/assets/late-AbC123_y.js").content == b"late"
    assert b"new" in client.get("/").content


def test_without_a_build_the_page_says_what_to_do(client, built):
    (built / "index.html").unlink()
    response = client.get("/")
    assert response.status_code == 503
    assert b"make up" in response.content


def test_what_is_below_api_is_a_problem_and_no_page(client, built):
    for path in ("/api", "/api/", "/api/v2/clusters", "/api/v1/nothing"):
        assert_problem(client.get(path), 404, "not_found")


def test_the_console_is_only_looked_at(client, built):
    assert Client(enforce_csrf_checks=True).post("/").status_code == 405
    assert client.head("/").content == b""


def test_security_headers_are_on_every_answer(client, built):
    for path in ("/", f"/{SCRIPT}", "/healthz", "/api/v1/nothing"):
        response = client.get(path)
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["X-Frame-Options"] == "DENY"
        assert response["Referrer-Policy"] == "same-origin"
        assert response["X-Request-Id"].startswith("req_")


async def served(path):
    return await AsyncClient().get(path)


def test_files_and_pages_are_served_over_asgi(built):
    """Django warns of an answer that streams a file synchronously; warnings fail tests."""
    for path, content in [(f"/{SCRIPT}", b"export {}"), ("/healthz", b'{"status": "ok"}')]:
        response = async_to_sync(served)(path)
        assert response.content == content
        assert response["X-Request-Id"].startswith("req_")
