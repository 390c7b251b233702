"""Finding groups in pictures, and which of them are not all there."""

import orjson
import pytest

from provisioning.cell.status.groups import GroupTable, groups_in
from provisioning.cell.status.picture import ENTRY_BYTES, Picture


def picture_of(*changes, slot=0, **fields):
    head = {"v": 1, "incarnation": 7, "next": "7.0.1", "connections": [2, 1]}
    picture = Picture(slot)
    picture.take(orjson.dumps(head | {"changes": changes} | fields))
    return picture


def group(number, name, cut=0):
    return ["g", number, name, "Stable", "consumer", "range", cut]


def test_a_group_is_found_by_name_as_in_the_list_of_all():
    first = picture_of(
        *(["t", 1, "orders"], ["p", 1, 0, 0, 10, 100, None], ["p", 1, 1, 0, 10, 100, None]),
        *(group(1, "b"), ["m", 1, 1, "m-1", "client", "10.0.0.1", None], ["o", 1, 1, 0, 4, 7, 1]),
        *(group(2, "a"), ["m", 2, 1, "m-2", "client", "10.0.0.2", None], ["o", 2, 1, 1, 9, 8, 1]),
    )
    # Its coordinator knows the topic by another number, and does not lead its partition.
    second = picture_of(
        ["t", 1, "other"], ["t", 2, "orders"], group(1, "c"), ["o", 1, 2, 1, 0, 5, 0]
    )
    table = GroupTable([first, second])
    assert table.names == ("a", "b", "c")
    assert table.has_all_names
    everything = groups_in([first, second])
    assert everything == [table.whole(name) for name in ("a", "b", "c")]
    assert [shown["lag"] for shown in everything] == [1, 6, 10]
    assert [member["member_id"] for shown in everything for member in shown["members"]] == [
        "m-2",
        "m-1",
    ]
    assert table.whole("none") is None


def test_a_group_of_which_something_is_missing_is_not_whole():
    long = "n" * 1021
    table = GroupTable([picture_of(group(1, "cut", 1), group(2, "kept"), group(3, long))])
    assert (table.whole("cut"), table.whole(long)) == (None, None)
    assert table.whole("kept") is not None
    assert not table.has_all_names, "the long name may be the beginning of another"
    assert not GroupTable([picture_of(group(1, "a"), cut=1)]).has_all_names
    assert GroupTable([picture_of(group(1, "n" * 1020))]).has_all_names
    # While a group moves to another coordinator, both may have it.
    moving = GroupTable([picture_of(group(1, "a")), picture_of(group(7, "a"), slot=1)])
    assert (moving.names, moving.whole("a")) == (("a",), None)


def test_a_group_that_moves_is_in_a_sample_once_as_the_one_who_knows_more_has_it():
    offset = ["o", 1, 1, 0, 4, None, 0]
    leads = picture_of(["t", 1, "t"], ["p", 1, 0, 0, 10, 9, None], group(1, "a"), group(2, "b"))
    # A broker that gave the partition away knows an earlier end.
    led = picture_of(["t", 1, "t"], ["p", 1, 0, 0, 7, 9, None], group(1, "a"), offset, slot=1)
    for pictures in ([leads, led], [led, leads]):
        shown = groups_in(pictures)
        assert [(entry["group"], entry["coordinator"]) for entry in shown] == [("a", 1), ("b", 0)]
        assert [entry["lag"] for entry in shown] == [6, 0]


def test_the_group_without_a_name_is_in_samples_alone():
    table = GroupTable([picture_of(group(1, ""), group(2, "a"))])
    assert table.names == ("a",)
    assert [shown["group"] for shown in table.all()] == ["", "a"]


def test_the_memory_of_a_picture_is_that_of_its_entries():
    picture = picture_of(["t", 1, "a" * 100], ["t", 2, "é" * 100], ["p", 1, 0, 0, 10, 100, None])
    assert picture.bytes == 3 * ENTRY_BYTES + 100 + 400
    head = {"v": 1, "incarnation": 7, "next": "7.0.2", "connections": [0, 0]}
    picture.take(
        orjson.dumps(head | {"changes": [["t", 1, "b"], ["-", ["t", 2]], ["-", ["t", 9]]]})
    )
    assert picture.bytes == 2 * ENTRY_BYTES + 1
    picture.take(orjson.dumps(head | {"anew": 1}))
    assert picture.bytes == 0


def test_entries_beyond_the_memory_are_refused():
    picture = Picture(bytes_max=2 * ENTRY_BYTES)
    head = {"v": 1, "incarnation": 7, "next": "7.0.2", "connections": [0, 0]}
    with pytest.raises(ValueError, match="more entries"):
        picture.take(orjson.dumps(head | {"changes": [["t", 1, "a" * ENTRY_BYTES], ["t", 2, "b"]]}))


def test_a_group_says_of_which_kind_its_members_are():
    """Members of another kind have assignments that nobody else can read."""
    (group,) = GroupTable([picture_of(["g", 1, "sink", "Stable", "connect", "sessioned", 0])]).all()
    assert (group["type"], group["protocol_type"], group["protocol"]) == (
        "classic",
        "connect",
        "sessioned",
    )
