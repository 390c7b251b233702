"""Lost and refused requests, pages, and the messages that people get."""

import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from console.programs.cli import app
from console.programs.cli.client import ATTEMPTS_MAX, RETRY_AFTER_MAX_S
from console.programs.cli.errors import CommandError
from console.programs.cli.transport import HttpTransport, Lost, Request
from tests.cli.running import LOST, json_reply

ROOT = Path(__file__).parents[2]
PROJECT = {"id": "prj_a", "name": "x", "labels": {}}


def problem_reply(status, code, detail="So it is.", headers=None, **more):
    return json_reply(status, {"code": code, "detail": detail, "request_id": "r1", **more},
                  **(headers or {}))  # fmt: skip


def test_a_lost_post_is_sent_again_under_the_same_key(scripted):
    result, requests, paused = scripted(
        [LOST, problem_reply(503, "unavailable"), json_reply(201, PROJECT)],
        "project",
        "create",
        "x",
    )
    assert result.code == 0
    keys = {request.headers["Idempotency-Key"] for request in requests}
    assert (len(requests), len(keys), len(paused)) == (3, 1, 2)
    assert json.loads(requests[0].body) == {"name": "x"}
    assert requests[0].target == "/api/v1/projects"
    assert requests[0].headers["Authorization"] == "Bearer fk_x"


def test_a_service_that_never_answers_is_given_up(scripted):
    result, requests, paused = scripted([LOST] * ATTEMPTS_MAX, "project", "list")
    assert (result.code, len(requests), result.out) == (8, ATTEMPTS_MAX, "")
    assert paused == sorted(paused)
    assert result.err.startswith("freshet: Freshet does not answer: Connection reset by peer.")


def test_a_busy_service_says_when_to_come_back(scripted):
    slow = problem_reply(429, "too_many_requests", headers={"retry_after": "7"})
    page = json_reply(200, {"items": [], "next_cursor": None})
    result, _, paused = scripted([slow, page], "project", "list")
    assert (result.code, paused) == (0, [7.0])
    late = {"retry_after": str(int(RETRY_AFTER_MAX_S) + 1)}
    result, _, paused = scripted(
        [problem_reply(429, "too_many_requests", headers=late)], "project", "list"
    )
    assert (result.code, paused) == (7, [])


def test_what_a_lost_request_deleted_counts_as_deleted(scripted):
    done = ["project", "delete", "prj_a", "--yes"]
    assert scripted([LOST, problem_reply(404, "not_found")], *done)[0].code == 0
    assert scripted([problem_reply(404, "not_found")], *done)[0].code == 4


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("..", "~.."),
        ("~..", "~~.."),
        ("~", "~"),
        (" ", "%20"),
    ],
)
def test_a_name_is_one_part_of_the_path(scripted, name, part):
    result, requests, _ = scripted([json_reply(200, {"group": name})], "group", "describe", name)
    assert (result.code, requests[0].target) == (0, f"/api/v1/clusters/cl_x/groups/{part}")


def test_all_pages_are_read(scripted):
    pages = [
        json_reply(
            200, {"items": [{"name": f"p{n}"}], "next_cursor": str(n + 1) if n < 2 else None}
        )
        for n in range(3)
    ]
    result, requests, _ = scripted(pages, "project", "list")
    assert [row[0] for row in result.rows()] == ["p0", "p1", "p2"]
    assert [request.target.partition("cursor=")[2] for request in requests] == ["", "1", "2"]


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (401, "not_authenticated", 3),
        (403, "permission_denied", 3),
        (404, "not_found", 4),
        (409, "name_taken", 5),
        (412, "precondition_failed", 5),
        (422, "validation_failed", 6),
        (451, "something_new", 1),
    ],
)
def test_exit_codes_of_problems(scripted, status, code, exit_code):
    result, requests, _ = scripted([problem_reply(status, code)], "project", "create", "x")
    assert (result.code, len(requests), result.out) == (exit_code, 1, "")
    assert result.err.startswith("freshet: So it is.\n")


def test_problems_say_where_and_what_to_do(scripted):
    wrong = problem_reply(
        422,
        "validation_failed",
        "The request has invalid values.",
        errors=[
            {"pointer": "/spec/idle_timeout_s", "code": "min", "detail": "At least 5."},
            {"pointer": "/configs/retention.ms", "code": "bad", "detail": "No number."},
        ],
    )
    result, _, _ = scripted([wrong], "cluster", "update", "cl_x", "--idle-timeout-s", "1")
    assert "  --idle-timeout-s: At least 5.\n  --configs retention.ms: No number.\n" in result.err
    full = problem_reply(403, "limit_reached", quota={"name": "clusters", "limit": 5, "used": 5})
    result, _, _ = scripted([full], "cluster", "create", "x")
    assert (result.code, "limit clusters: 5 of 5 used" in result.err) == (7, True)
    assert "freshet limit-request create" in result.err
    busy = problem_reply(409, "operation_in_progress", operation_id="op_z")
    result, _, _ = scripted([busy], "cluster", "wake", "cl_x")
    assert "freshet operation wait op_z" in result.err
    result, _, _ = scripted([problem_reply(500, "internal_error")], "project", "list")
    assert "give support this request id: r1" in result.err


def test_an_answer_of_another_server_is_named(scripted):
    page = json_reply(200)
    page.content = b"<html>"
    assert "is not Freshet" in scripted([page], "project", "list")[0].err
    result, requests, _ = scripted(
        [json_reply(301, location="https://else.example")], "project", "list"
    )
    assert (result.code, len(requests), "https://else.example" in result.err) == (8, 1, True)


def test_operations_are_waited_for(scripted):
    running = {"id": "op_z", "type": "wake_cluster", "state": "running", "error": None}
    done = {**running, "state": "succeeded"}
    failed = {**running, "state": "failed", "error": {"code": "x", "detail": "No room."}}
    wake = ["cluster", "wake", "cl_x", "--wait", "-o", "json"]
    result, requests, _ = scripted(
        [json_reply(202, running), json_reply(200, running), json_reply(200, done)], *wake
    )
    assert (result.code, result.json) == (0, done)
    assert [request.target.partition("?")[0] for request in requests[1:]] == [
        "/api/v1/operations/op_z"
    ] * 2
    result, _, _ = scripted([json_reply(202, running), json_reply(200, failed)], *wake)
    assert (result.code, result.json, "No room." in result.err) == (9, failed, True)


def test_ctrl_c_is_quiet(scripted):
    result, _, _ = scripted([KeyboardInterrupt()], "project", "list")
    assert (result.code, result.out, result.err) == (130, "", "\n")


def test_control_characters_of_answers_are_escaped(scripted):
    evil = {"name": "\x1b[2Jx\u202e", "id": "prj_a"}
    listed = json_reply(200, {"items": [evil], "next_cursor": None})
    result, _, _ = scripted([listed], "project", "list")
    assert "\\x1b[2Jx\\u202e" in result.out
    result, _, _ = scripted([listed], "project", "list", "-o", "json")
    assert result.json["items"] == [evil]
    assert "\x1b" not in result.out


@pytest.fixture
def server():
    """A real HTTP server that answers each request with its path, and counts its connections."""
    connections = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            connections.append(self)
            super().setup()

        def log_message(self, *_):
            pass

        def do_GET(self):
            if self.path == "/lost":
                self.close_connection = True
                return
            content = self.path.encode() * (10_000 if self.path == "/long" else 1)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Set-Cookie", "a=1")
            self.send_header("Set-Cookie", "b=2")
            self.end_headers()
            self.wfile.write(content)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}", connections
        listening.shutdown()
        thread.join()


def test_one_connection_serves_all_requests_until_one_is_left_unread(server):
    address, connections = server
    transport = HttpTransport(address)
    for path in ("/a", "/b"):
        with transport.open(Request("GET", path)) as reply:
            assert (reply.status, reply.read()) == (200, path.encode())
            assert reply.headers["set-cookie"] == "a=1\nb=2"
    assert len(connections) == 1
    with transport.open(Request("GET", "/long")) as reply:
        assert next(reply.chunks())
    with transport.open(Request("GET", "/c")) as reply:
        assert reply.read() == b"/c"
    assert len(connections) == 2
    transport.close()


def test_a_lost_answer_and_a_refused_connection_raise_lost(server):
    address, _ = server
    transport = HttpTransport(address)
    with pytest.raises(Lost), transport.open(Request("GET", "/lost")):
        pass
    transport.close()
    nobody = HttpTransport("http://127.0.0.1:1")
    with pytest.raises(Lost), nobody.open(Request("GET", "/")):
        pass


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "https://", "http://x:99999"])
def test_a_wrong_address_is_refused(url):
    with pytest.raises(CommandError):
        HttpTransport(url)


def test_help_of_every_command_can_be_shown():
    def walk(command, words):
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, [*words, name])

    for words, command in walk(app.build_root(), []):
        assert command.help, words
        assert command.get_help(command.context_class(command, info_name=" ".join(words)))


def test_slow_modules_are_not_imported():
    script = (
        "import sys; from console.programs.cli import app; app.build_root(); "
        "print([name for name in ('django', 'httpx', 'rich', 'asyncio', 'confluent_kafka')"
        " if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout == "[]\n"
