"""Objects of a real S3-compatible server, and of one that throttles, fails or loses its answers."""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from brokers import s3
from brokers.locations import S3Location, object_location
from brokers.objects import remove_below
from brokers.s3 import ObjectStoreError, S3Objects
from tests.s3 import ACCESS_KEY, SECRET_KEY, running_s3

pytestmark = pytest.mark.full("stores")

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


def opened(location):
    place = object_location(location)
    assert isinstance(place, S3Location)
    return S3Objects(place)


@pytest.fixture
def location(s3_server):
    return s3_server.make_bucket().replace("?", "/cell/one?")


@pytest.fixture
def objects(location):
    return opened(location)


class FaultyProxy(ThreadingHTTPServer):
    """A proxy that treats each request as the next of `faults` says: `slow`, `lose` or `pass`.

    `slow` is refused and not passed on; `lose` is passed on, and its answer dropped; `pass`, as all
    requests after the last fault, is passed on with its answer.
    """

    def __init__(self, behind):
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind, self.faults, self.asked = behind, [], []
        self.pool = urllib3.PoolManager()
        self.lock = threading.Lock()


class Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.asked.append(self.command)
            fault = self.server.faults.pop(0) if self.server.faults else "pass"
        if fault == "slow":
            return self.say(503, {"Content-Type": "application/xml"}, SLOW_DOWN)
        answer = self.server.pool.request(
            self.command,
            self.server.behind + self.path,
            body=body,
            headers=dict(self.headers),
            retries=False,
        )
        if fault == "lose":
            self.close_connection = True
            return None
        return self.say(answer.status, answer.headers, answer.data)

    def say(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"content-length", "transfer-encoding", "connection", "date"}:
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length or 0))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


for command in ("GET", "PUT", "POST", "DELETE", "HEAD"):
    setattr(Passing, f"do_{command}", Passing.handle_any)


@pytest.fixture
def proxy(s3_server):
    server = FaultyProxy(s3_server.endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    server.pool.clear()


@pytest.fixture
def faulty_store(location, s3_server, proxy):
    endpoint = f"http://127.0.0.1:{proxy.server_address[1]}"
    return opened(location.replace(s3_server.endpoint, endpoint))


def test_a_throttled_request_is_made_again(faulty_store, objects, proxy):
    proxy.faults = ["slow", "slow"]
    assert faulty_store.put_new("a", b"1") is True
    assert proxy.asked == ["PUT"] * 3
    proxy.faults = ["slow"]
    assert faulty_store.get("a") == objects.get("a") == b"1"


def test_a_store_that_throttles_for_ever_is_an_error(faulty_store, proxy, monkeypatch):
    monkeypatch.setattr(s3, "ATTEMPTS", 2)
    proxy.faults = ["slow"] * 2
    with pytest.raises(ObjectStoreError, match="SlowDown"):
        faulty_store.put_new("a", b"1")
    assert proxy.asked == ["PUT"] * 2


def test_an_object_whose_answer_was_lost_is_ours(faulty_store, objects, proxy):
    proxy.faults = ["lose"]
    assert faulty_store.put_new("a", b"1") is True
    assert proxy.asked == ["PUT", "PUT", "GET"]
    assert objects.get("a") == b"1"


def test_an_object_of_another_is_not_ours_for_a_lost_answer(faulty_store, objects, proxy):
    objects.put_new("a", b"theirs")
    proxy.faults = ["lose"]
    assert faulty_store.put_new("a", b"ours") is False
    assert objects.get("a") == b"theirs"


def test_a_large_object_goes_up_in_parts(faulty_store, objects, proxy, s3_server, monkeypatch):
    monkeypatch.setattr(s3, "PART_BYTES", 5 * 1024 * 1024)
    data = os.urandom(11 * 1024 * 1024)
    # The second part is throttled; the answer to the end of the upload is lost.
    proxy.faults = ["pass", "pass", "slow", "pass", "pass", "lose"]
    assert faulty_store.put_new("large", data) is True
    assert objects.get("large") == data
    assert objects.put_new("large", data[:-1] + b"x") is False
    assert objects.get("large") == data
    client, bucket = s3_server.client(), objects.location.bucket
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)


def test_a_folder_is_removed_with_uploads_under_way(objects, location, s3_server, monkeypatch):
    monkeypatch.setattr(s3, "REMOVED_AT_ONCE", 2)
    for number in range(5):
        objects.put_new(f"cl_1/objects/{number}", b"x")
    objects.put_new("cl_10/objects/1", b"x")
    client, bucket = s3_server.client(), objects.location.bucket
    client.create_multipart_upload(Bucket=bucket, Key="cell/one/cl_1/large")
    client.create_multipart_upload(Bucket=bucket, Key="cell/one/cl_10/large")
    for _ in range(2):
        remove_below(location, "cl_1")
        assert list(objects.list("")) == ["cl_10/objects/1"]
        uploads = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
        assert [upload["Key"] for upload in uploads] == ["cell/one/cl_10/large"]


def test_the_empty_objects_of_folders_are_no_keys_and_go_with_the_rest(objects, s3_server):
    client, bucket = s3_server.client(), objects.location.bucket
    # As Hadoop makes them, to have folders in a bucket.
    client.put_object(Bucket=bucket, Key="cell/one/run_1/output/", Body=b"")
    objects.put_new("run_1/output/report.json", b"x")
    assert list(objects.list("run_1/")) == ["run_1/output/report.json"]
    assert objects.remove("run_1/") == 2
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)


def test_keys_are_read_anew_when_their_file_changes(s3_server, tmp_path):
    keys = tmp_path / "keys"
    location = s3_server.make_bucket().replace(str(s3_server.key_file), str(keys))
    objects = opened(location)
    with pytest.raises(FileNotFoundError):
        objects.get("a")
    for secret, refused in [("wrong", True), (SECRET_KEY, False), ("wrong again", True)]:
        new = tmp_path / "new"
        new.write_text(
            f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {secret}\n"
        )
        new.replace(keys)
        if refused:
            with pytest.raises(PermissionError, match="refuses: SignatureDoesNotMatch"):
                objects.put_new("a", b"1")
        else:
            assert objects.put_new("a", b"1") is True


def test_a_file_without_keys_is_said(s3_server, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("[other]\n")
    location = s3_server.make_bucket().replace(str(s3_server.key_file), str(keys))
    with pytest.raises(ObjectStoreError, match="no keys"):
        opened(location).get("a")


def test_a_store_that_is_down_is_an_error_until_it_is_back(tmp_path, monkeypatch):
    monkeypatch.setattr(s3, "ATTEMPTS", 2)
    with running_s3(tmp_path) as server:
        objects = opened(server.make_bucket())
        assert objects.put_new("a", b"1") is True
        server.stop()
        for call in (lambda: objects.get("a"), lambda: objects.put_new("b", b"2")):
            with pytest.raises(ObjectStoreError):
                call()
        with pytest.raises(ObjectStoreError):
            list(objects.list(""))
        server.start()
        assert objects.get("a") == b"1"
        assert list(objects.list("")) == ["a"]


@pytest.mark.parametrize("key", ["", "/a", "../a", "a/../b", "a//b", "a/"])
def test_no_key_leads_out_of_the_prefix(objects, key):
    with pytest.raises(ValueError, match="is no key"):
        objects.put_new(key, b"")
