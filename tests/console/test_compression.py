"""Answers come compressed to whoever takes gzip, and files as the build has compressed them."""

import dataclasses
import gzip

import brotli
import pytest
from asgiref.sync import async_to_sync
from django.http import HttpResponse, StreamingHttpResponse
from django.test import AsyncClient, RequestFactory

from console.base.common.compression import BYTES_MIN, compression_middleware
from console.base.common.conf import config

LONG = b'{"items": ["' + b"a" * BYTES_MIN + b'"]}'
TAKES_GZIP = {"Accept-Encoding": "gzip, br"}
SCRIPT = "assets/index-AbC123_x.js"


def serve(response, **headers):
    request = RequestFactory(headers=headers).get("/")
    return compression_middleware(lambda _: response)(request)


def test_json_is_compressed_for_whoever_takes_it():
    answer = serve(HttpResponse(LONG, content_type="application/json"), **TAKES_GZIP)
    assert answer["Content-Encoding"] == "gzip"
    assert answer["Vary"] == "Accept-Encoding"
    assert len(answer.content) < len(LONG) / 2
    assert int(answer["Content-Length"]) == len(answer.content)
    assert gzip.decompress(answer.content) == LONG


def test_whoever_does_not_take_it_gets_it_as_it_is():
    answer = serve(HttpResponse(LONG, content_type="application/json"))
    assert answer.content == LONG
    assert answer["Vary"] == "Accept-Encoding"


def test_the_tag_of_a_resource_stays_as_it_is():
    response = HttpResponse(LONG, content_type="application/json", headers={"ETag": '"3"'})
    answer = serve(response, **TAKES_GZIP)
    assert (answer["Content-Encoding"], answer["ETag"]) == ("gzip", '"3"')


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse(b"{}", content_type="application/json"),
        HttpResponse(LONG, content_type="application/pdf"),
        HttpResponse(LONG, content_type="text/html", headers={"Content-Encoding": "br"}),
        StreamingHttpResponse([LONG], content_type="application/json"),
    ],
    ids=["short", "document", "compressed", "stream"],
)
def test_what_gains_nothing_is_left_alone(response):
    before = response.headers.get("Content-Encoding")
    answer = serve(response, **TAKES_GZIP)
    assert answer.headers.get("Content-Encoding") == before


@pytest.fixture
def built(tmp_path, settings):
    """A folder with a build of the console, whose page is long."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(b"<!doctype html>" + LONG)
    console = dataclasses.replace(config().console, folder=tmp_path)
    settings.FRESHET = dataclasses.replace(config(), console=console)
    return tmp_path


def test_an_asynchronous_server_compresses_too(built):
    answer = async_to_sync(AsyncClient().get)("/", headers=TAKES_GZIP)
    assert answer["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content) == b"<!doctype html>" + LONG


@pytest.mark.parametrize(
    ("takes", "encoding", "unpack"),
    [
        ("br, gzip", "br", brotli.decompress),
        ("gzip", "gzip", gzip.decompress),
        ("", None, bytes),
    ],
)
def test_a_file_is_served_as_the_build_compressed_it(client, built, takes, encoding, unpack):
    text = b"export const many = [" + b"0," * 5000 + b"]"
    script = built / SCRIPT
    script.write_bytes(text)
    script.with_name(script.name + ".br").write_bytes(brotli.compress(text))
    script.with_name(script.name + ".gz").write_bytes(gzip.compress(text))
    answer = client.get(f"/{SCRIPT}", headers={"Accept-Encoding": takes})
    assert answer.headers.get("Content-Encoding") == encoding
    assert "Accept-Encoding" in answer["Vary"]
    assert "immutable" in answer["Cache-Control"]
    assert unpack(answer.content) == text
    assert client.get(f"/{SCRIPT}.br").status_code == 404
