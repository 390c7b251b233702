"""Bytes of a tenant's clients that cannot be decoded: one request fails, the web server goes on."""

from contextlib import closing

import pytest

from provisioning import kafka
from tests.console import cases
from tests.provisioning.kafka.hostile import join_alone, log_in, produce_with_raw_header


@pytest.fixture
def topic(api, path, awake):
    made = api().post(f"{path}/topics", {"name": "t"})
    assert made.json()["status"]["conditions"][0]["status"] == "true", made.content
    return f"{path}/topics/t"


@pytest.fixture
def raw(awake):
    connection = awake.connection
    with closing(log_in(connection.bootstrap, connection.username, connection.password)) as client:
        yield client


@pytest.mark.parametrize("content", [b"\x00", b'{"partitions": [1]}'])
def test_a_group_whose_assignment_cannot_be_decoded_is_shown(api, path, raw, content):
    join_alone(raw, "odd", content)
    group = api().get(f"{path}/groups/odd").json()
    assert (group["state"], group["members"][0]["assignments"]) == ("Stable", [])
    (listed,) = api().get(f"{path}/groups").json()["items"]
    assert listed["group"] == "odd"


def test_calls_beyond_the_limit_are_asked_to_come_again(api, topic, monkeypatch):
    monkeypatch.setattr(kafka.shared_clients(), "calls_max", 0)
    problem = cases.assert_problem(api().get(f"{topic}/messages"), 503, "unavailable")
    assert "Too many" in problem["detail"]


def test_a_headers_name_that_is_no_text_is_shown_again_and_again(api, topic, raw):
    for n in range(3):
        produce_with_raw_header(raw, "t", b"%d" % n)
    for _ in range(10):
        page = api().get(f"{topic}/messages", query={"from": "oldest"})
        assert page.status_code == 200, page.content
    for record in page.json()["items"]:
        shown = [(header["key"], header["key_base64"]) for header in record["headers"]]
        assert shown == [("\\xff\\xfe", "//4="), ("text", None)]
