"""An answer that is not about what was asked is noticed."""

import pytest

from tests.protocol.checks import check_subjects, error_codes
from tests.protocol.schemas import load_schemas


def offsets(*topics):
    """A request or an answer of ListOffsets about topics, as pairs of name and partitions."""
    return {
        "Topics": [
            {"Name": name, "Partitions": [{"PartitionIndex": index} for index in indexes]}
            for name, indexes in topics
        ]
    }


ASKED = offsets(("a", [0, 1]), ("b", [0]))


def check(name, version, asked, answered):
    check_subjects(load_schemas().named(name), version, asked, answered)


def test_what_was_asked_is_answered_in_any_order():
    check("ListOffsets", 5, ASKED, offsets(("b", [0]), ("a", [1, 0])))
    check("ListOffsets", 5, offsets(("a", [0, 0])), offsets(("a", [0])))


@pytest.mark.parametrize(
    "answered",
    [
        offsets(("a", [0, 1])),
        offsets(("a", [0]), ("b", [0])),
        offsets(("a", [0, 1]), ("b", [0, 1])),
        offsets(("a", [0, 1]), ("b", [0]), ("c", [0])),
        offsets(("a", [0, 1]), ("b", [0]), ("b", [0])),
        offsets(("b", [0, 1]), ("a", [0])),
        offsets(),
    ],
)
def test_what_is_left_out_doubled_or_added_is_noticed(answered):
    with pytest.raises(AssertionError):
        check("ListOffsets", 5, ASKED, answered)


def test_topics_are_distinguished_by_their_ids():
    first, second = object(), object()
    asked = {"Topics": [{"TopicId": first, "Partitions": [{"Partition": 3}]}]}
    partitions = [{"PartitionIndex": 3}]
    check("Fetch", 13, asked, {"Responses": [{"TopicId": first, "Partitions": partitions}]})
    with pytest.raises(AssertionError):
        check("Fetch", 13, asked, {"Responses": [{"TopicId": second, "Partitions": partitions}]})


def test_groups_too():
    check("DescribeGroups", 0, {"Groups": ["a"]}, {"Groups": [{"GroupId": "a"}]})
    for wrong in ([], [{"GroupId": "b"}]):
        with pytest.raises(AssertionError):
            check("DescribeGroups", 0, {"Groups": ["a"]}, {"Groups": wrong})


def test_only_a_request_that_is_refused_as_a_whole_needs_no_topics():
    asked = {"Topics": [{"Topic": "a", "Partitions": [{"Partition": 0}]}]}
    check("Fetch", 7, asked, {"ErrorCode": 70, "Responses": []})
    with pytest.raises(AssertionError):
        check("Fetch", 7, asked, {"ErrorCode": 0, "Responses": []})
    group = {"GroupId": "g", "Topics": [{"Name": "a", "PartitionIndexes": [0]}]}
    refused = {"GroupId": "g", "Topics": [], "ErrorCode": 30}
    check("OffsetFetch", 8, {"Groups": [group]}, {"Groups": [refused]})
    with pytest.raises(AssertionError):
        check("OffsetFetch", 8, {"Groups": [group]}, {"Groups": [{**refused, "ErrorCode": 0}]})


def test_errors_are_found_wherever_they_are():
    message = load_schemas().named("CreateTopics").response
    topic = {"Name": "a", "ErrorCode": 0, "TopicConfigErrorCode": 29, "Configs": None}
    assert sorted(error_codes(message, 7, {"Topics": [topic]})) == [0, 29]
