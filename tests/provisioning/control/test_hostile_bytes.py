"""Bytes of a tenant's clients that cannot be decoded: one request fails, the web server goes on."""

from contextlib import closing

import pytest

from provisioning import kafka
from tests.console import cases
from tests.provisioning.kafka.hostile import join_alone, log_in, offer_raw_header

INVALID_RECORD = 87


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


def test_a_headers_name_that_is_no_text_is_not_stored(api, topic, raw):
    assert offer_raw_header(raw, "t", b"x") == INVALID_RECORD
    page = api().get(f"{topic}/messages", query={"from": "oldest"})
    assert (page.status_code, page.json()["items"]) == (200, [])
