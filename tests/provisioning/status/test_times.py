"""What leaders are asked about groups that other brokers coordinate."""

import orjson
import pytest

from provisioning.cell.status.groups import GroupTable
from provisioning.cell.status.times import ASKED_MAX, WaitingTimes
from tests.provisioning.status.test_groups import group, picture_of

TOPIC, NUMBER = 5, 1


def test_only_the_leader_is_asked_and_only_for_records_that_wait():
    coordinator = picture_of(
        *(["t", 1, "orders"], ["p", 1, 0, 0, 10, 100, None], group(1, "billing")),
        # Its own; one that another leads; one that has consumed all; one that nobody leads.
        *(["o", 1, 1, 0, 4, None, 0], ["o", 1, 1, 1, 4, None, 0]),
        *(["o", 1, 1, 2, 9, None, 0], ["o", 1, 1, 3, 0, None, 0]),
    )
    leader = picture_of(
        *(["t", TOPIC, "orders"], ["p", TOPIC, NUMBER, 0, 10, 100, None]),
        ["p", TOPIC, 2, 0, 9, 100, None],
        slot=1,
    )
    table = GroupTable([coordinator, leader])
    assert table.want_times()
    assert coordinator.query == f"?since={coordinator.next}"
    assert leader.query == f"?since={leader.next}&times={TOPIC}.{NUMBER}.4"
    leader.take(record(times=[[TOPIC, NUMBER, 4, 1_000], [TOPIC, 2, 9, 2_000]]))
    assert not table.want_times()
    assert "times" not in leader.query
    (shown,) = table.all()
    assert {entry["partition"]: entry["since_ms"] for entry in shown["partitions"]} == {
        0: None,
        1: 1_000,
        2: None,
        3: None,
    }


def test_a_group_that_goes_on_has_the_time_of_a_moment_ago():
    times = WaitingTimes()
    assert times.want([(1, 0, 10)])
    times.take((1, 0, 10), 500)
    assert not times.want([(1, 0, 20)]), "there is one to show meanwhile"
    assert (times.of((1, 0, 20)), times.asked()) == (500, "1.0.20")
    assert times.of((1, 0, 9)) is None, "it went back"
    assert times.want([(1, 0, 30)]), "that is long ago by now"
    assert times.of((1, 0, 30)) is None


def test_no_more_is_asked_for_than_a_broker_looks_at():
    times = WaitingTimes()
    times.want((1, number, 0) for number in range(ASKED_MAX + 10))
    asked = times.asked().split(",")
    assert len(asked) == ASKED_MAX
    for waiting in asked:
        topic, number, offset = map(int, waiting.split("."))
        times.take((topic, number, offset), 1)
    assert len(times.asked().split(",")) == 10


def test_nothing_is_taken_that_was_not_asked_for():
    times = WaitingTimes()
    times.want([(1, 0, 10)])
    times.take((1, 0, 11), 500)
    assert times.of((1, 0, 11)) is None
    times.take((1, 0, 10), 500)
    times.forget()
    assert times.of((1, 0, 10)) is None


@pytest.mark.parametrize("times", [{}, [[1, 0, 4]], [[1, 0, 4, "now"]], [7]])
def test_what_are_no_times_is_refused(times):
    with pytest.raises(ValueError, match="time"):
        picture_of(times=times)


def record(**fields):
    head = {"v": 1, "incarnation": 7, "next": "7.0.2", "connections": [2, 1]}
    return orjson.dumps(head | fields)
