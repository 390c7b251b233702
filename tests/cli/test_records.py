"""Commands for records, groups and their lag: with a running broker, and with scripted streams."""

import json

import pytest
from confluent_kafka import Consumer

from console.base.common.actor import Role
from console.programs.cli.answers import damage_text
from console.programs.cli.consume import event_id
from provisioning.administration.api import streams
from tests.cli.running import LOST, WholeReply, json_reply
from tests.provisioning.control.damaging import store_damaged
from tests.provisioning.control.world import access_of, running_broker
from tests.provisioning.kafka.clients import settings as client_settings


@pytest.fixture
def awake(freshet, cluster_id):
    """Runs command lines for a cluster whose broker runs, with a topic `t`."""
    with running_broker(cluster_id):

        def run_line(*arguments, **options):
            return freshet(*arguments, FRESHET_CLUSTER=cluster_id, **options)

        assert run_line("topic", "create", "t", "--partitions", "2").code == 0
        yield run_line


@pytest.mark.parametrize("command", [("consume", "t"), ("message", "list", "t")])
def test_who_may_not_read_records_learns_which_right_is_missing(awake, tenant, command):
    refused = awake(*command, key=tenant.keys[Role.VIEWER])
    assert refused.code == 3
    assert "data.read" in refused.err
    assert awake("topic", "describe", "t", key=tenant.keys[Role.VIEWER]).code == 0


def test_records_go_in_and_come_out(awake, tmp_path):
    result = awake("produce", "t", "--partition", "0", stdin_text="first\nsecond\r\n")
    assert (result.code, result.out) == (0, "partition 0 offset 0\npartition 0 offset 1\n")
    assert result.err == "2 records were produced.\n"
    result = awake(
        "produce", "t", "-s", ":", "--partition", "1", "-o", "json", stdin_text="k:a:b\n"
    )
    assert json.loads(result.out)["offset"] == "0"
    assert awake("produce", "t", "-s", ":", stdin_text="nothing\n").code == 2
    file = tmp_path / "binary"
    file.write_bytes(b"\xff\x00")
    made = awake(
        "produce", "t", "--file", str(file), "--header", "a=1", "--partition", "0", "-k", "x"
    )
    assert made.code == 0

    result = awake("consume", "t", "--from-beginning", "--partition", "0")
    assert result.out == "first\nsecond\n/wA=\n"
    assert (
        awake("consume", "t", "--from-offset", "1", "--partition", "0", "-n", "1").out == "second\n"
    )
    assert awake("consume", "t", "--last", "1", "--partition", "1", "--keys").out == "k\ta:b\n"
    assert sorted(awake("consume", "t", "--since", "-1h").out.splitlines()) == sorted(
        ["first", "second", "a:b", "/wA="]
    )
    assert awake("consume", "t", "--last", "100", "--filter", "key = x").out == "/wA=\n"
    long = awake("consume", "t", "-b", "--partition", "1", "--long").out.split("\t")
    assert (long[0], long[2:]) == ("1:0", ["k", "a:b\n"])
    shown = awake("consume", "t", "-b", "--partition", "0", "-n", "1", "-o", "json").json
    assert (shown["value"]["text"], shown["offset"]) == ("first", "0")
    listed = awake("message", "list", "t", "--from", "oldest", "--partition", "1", "-o", "json")
    assert [item["key"]["text"] for item in listed.json["items"]] == ["k"]
    assert awake("consume", "t", "-b", "--last", "1").code == 2
    assert awake("consume", "none", "-b").code == 4

    cut = awake("topic", "delete-records", "t", "--before", "0:2", "--before", "1:end", "-y")
    assert cut.rows() == [["0", "2", "2"], ["1", "1", "1"]]
    assert awake("consume", "t", "-b").out == "/wA=\n"


def test_a_value_or_a_key_that_is_cut_is_said_to_be(awake, tmp_path):
    long = "x" * 65_536
    for name, options in (("value", ()), ("key", ("--keys",))):
        file = tmp_path / name
        file.write_text(f"{long}y" if name == "value" else "v")
        key = f"{long}y" if name == "key" else "k"
        assert awake("produce", "t", "--file", str(file), "-k", key, "--partition", "0").code == 0
        result = awake("consume", "t", "--last", "1", "--partition", "0", *options)
        assert result.err == "Of longer keys and values only the first 64 KiB are shown.\n"
        assert long in result.out
        assert f"{long}y" not in result.out
    # What is printed is whole here: the key that is cut is not printed.
    plain = awake("consume", "t", "--last", "1", "--partition", "0")
    assert (plain.out, plain.err) == ("v\n", "")


def test_damaged_batches_are_named_and_deleted(freshet, cluster_id):
    with running_broker(cluster_id) as broker:

        def run_line(*arguments):
            return freshet(*arguments, FRESHET_CLUSTER=cluster_id)

        assert run_line("topic", "create", "t").code == 0
        store_damaged(broker, cluster_id, "t", ["a", "b", "c", "d", "e"], [1, 2, 4])
        named = [
            "Partition 0: 1 offset (1) cannot be decoded: skipped.",
            "Partition 0: 1 offset (2) cannot be decoded: skipped.",
            "Partition 0: 1 offset (4) cannot be decoded: skipped.",
        ]
        for where in (("--from-beginning",), ("--last", "9"), ("-b", "-o", "json")):
            result = run_line("consume", "t", *where)
            assert len(result.out.splitlines()) == 2
            assert result.err.splitlines() == named
        listed = run_line("message", "list", "t", "--from", "oldest")
        assert [row[1] for row in listed.rows()] == ["0", "3"]
        assert listed.err.splitlines() == named
        listed = run_line("message", "list", "t", "--from", "oldest", "-o", "json").json
        assert [batch["first_offset"] for batch in listed["damaged"]] == ["1", "2", "4"]

        skip = ["topic", "skip-damaged", "t", "--partition", "0", "-o", "json"]
        planned = run_line(*skip, "--offset", "2").json
        assert (planned["records_before"], planned["skipped"]) == ("2", False)
        assert len(run_line("consume", "t", "-b").out.splitlines()) == 2
        done = run_line(*skip, "--offset", "2", "--confirm").json
        assert done == {**planned, "skipped": True}
        assert run_line("consume", "t", "-b").out.split()[0] == "d"
        again = run_line(*skip, "--offset", "2", "--confirm")
        assert (again.code, "begins at 3 by now" in again.err) == (5, True)


def test_several_offsets_are_a_range():
    batch = {"partition": 3, "first_offset": "94", "next_offset": "97", "reason": "undecodable"}
    text = "Partition 3: 3 offsets (94–96) cannot be decoded: skipped."
    assert damage_text(batch) == text


def test_a_live_tail_says_what_it_skipped(scripted):
    damaged = {"partition": 0, "first_offset": 5, "next_offset": 7, "reason": "too_slow"}
    answers = [
        json_reply(200, END),
        stream_reply(("damaged", damaged), ("damaged", {**damaged, "partition": 1})),
        stream_reply(("message", record(7, "b"))),
    ]
    result, requests, _ = scripted(answers, "consume", "t", "-n", "1", "--partition", "0")
    assert (result.code, result.out) == (0, "b\n")
    assert result.err == "Partition 0: 2 offsets (5–6) cannot be decoded: skipped.\n"
    assert requests[-1].headers["Last-Event-ID"] == event_id({0: 7, 1: 7})


def test_a_group_is_watched_moved_and_deleted(awake, cluster_id):
    awake("produce", "t", "--partition", "0", stdin_text="a\nb\nc\n")
    settings = client_settings(access_of(cluster_id).connection)
    member = Consumer(settings | {"group.id": "billing", "auto.offset.reset": "earliest",
                                  "enable.auto.commit": False})  # fmt: skip
    member.subscribe(["t"])
    while (message := member.poll(0.2)) is None or message.error():
        pass
    member.commit(message, asynchronous=False)
    watched = awake("lag", "billing", "--watch", "--rounds", "2", "-o", "json")
    assert [json.loads(line)["lag"] for line in watched.out.splitlines()] == ["2", "2"]
    shown = awake("lag", "billing", "--topic", "t")
    assert shown.out.splitlines()[1].split()[:3] == ["billing", "Stable", "2"]
    assert shown.out.splitlines()[4].split()[:5] == ["t", "0", "1", "3", "2"]
    assert awake("lag").rows()[0][:3] == ["billing", "Stable", "2"]
    busy = awake("group", "reset-offsets", "billing", "--to", "earliest")
    assert (busy.code, "Stable" in busy.err) == (5, True)
    member.close()

    reset = ["group", "reset-offsets", "billing"]
    plan = awake(*reset, "--to", "latest", "--topic", "t:0", "--dry-run", "-o", "json").json
    assert (plan["dry_run"], [item["target"] for item in plan["items"]]) == (True, ["3"])
    assert awake("group", "describe", "billing", "-o", "json").json["lag"] == "2"
    assert awake(*reset, "--to", "shift", "--shift", "1").rows() == [["t", "0", "1", "2", "1"]]
    assert awake(*reset, "--to", "timestamp", "--timestamp", "-1d").code == 0
    copied = awake("group", "reset-offsets", "copy", "--to-group", "billing")
    assert copied.code == 0
    assert awake("group", "list").rows()[-1][0] == "copy"
    assert awake(*reset, "--topic", "t:x", "--to", "latest").code == 2
    assert awake("group", "delete", "copy", "--yes").code == 0
    assert awake("group", "describe", "copy").code == 4


@pytest.mark.parametrize("name", ["a/b", "a/reset-offsets", "a%2Fb", "..", "~.", "é b?#"])
def test_a_group_may_have_any_name(awake, name):
    awake("produce", "t", "--partition", "0", stdin_text="a\nb\n")
    reset = ["group", "reset-offsets", name, "--topic", "t:0", "--to", "latest"]
    assert awake(*reset).rows() == [["t", "0", "-", "2", "0"]]
    assert awake("group", "describe", name, "-o", "json").json["group"] == name
    assert awake("lag", name, "-o", "json").json["partitions"][0]["committed"] == "2"
    assert awake("group", "delete", name, "--yes").code == 0
    assert awake("group", "describe", name).code == 4


def test_a_sleeping_cluster_says_how_it_is_woken(freshet, cluster_id):
    freshet("topic", "create", "t", FRESHET_CLUSTER=cluster_id)
    result = freshet("consume", "t", "-b", FRESHET_CLUSTER=cluster_id)
    assert (result.code, "--wake" in result.err) == (5, True)


END: dict[str, object] = {"items": [], "next_cursor": None, "scanned": {"partitions": [
    {"partition": 0, "position": 5, "begin": 0, "end": 5}]}}  # fmt: skip


def record(offset, text="x", partition=0):
    value = {"base64": "eA==", "text": text, "size": 1, "truncated": False}
    return {"partition": partition, "offset": offset, "timestamp_ms": 0, "key": None,
            "value": value, "headers": [], "size": 1}  # fmt: skip


def stream_reply(*events):
    """An answer with these events, each its kind and data."""
    text = ": live\n\n" + "".join(
        f"id: z\nevent: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events
    )
    return WholeReply(200, {"content-type": "text/event-stream"}, text.encode())


def test_a_live_tail_goes_on_where_a_stream_ended(scripted):
    answers = [
        json_reply(200, END),
        stream_reply(("message", record(5, "a")), ("message", record(0, "other", 1))),
        LOST,
        stream_reply(("skipped", {"count": 3}), ("end", {"reason": "brokers_changed"})),
        json_reply(503, {"code": "unavailable", "detail": "Away."}),
        stream_reply(("message", record(9, "b"))),
    ]
    result, requests, paused = scripted(answers, "consume", "t", "-n", "2", "--partition", "0")
    assert (result.code, result.out) == (0, "a\nb\n")
    assert result.err == "3 records were skipped, as they arrive too fast.\n"
    ids = [request.headers.get("Last-Event-ID") for request in requests]
    begun, behind = event_id({0: 5}), event_id({0: 6, 1: 1})
    assert ids == [None, begun, behind, behind, behind, behind]
    assert streams.positions_of(behind) == {0: 6, 1: 1}
    assert len(paused) == 2


def test_a_live_tail_ends_when_it_may_go_on_no_more(scripted):
    for reason, code in (("access_ended", 3), ("topic_gone", 4)):
        result, _, _ = scripted(
            [json_reply(200, END), stream_reply(("end", {"reason": reason}))], "consume", "t"
        )
        assert (result.code, result.out) == (code, "")
    result, _, paused = scripted([json_reply(200, END), *[LOST] * 6], "consume", "t")
    assert (result.code, len(paused)) == (8, 5)
    refused = json_reply(404, {"code": "not_found", "detail": "There is none."})
    assert scripted([json_reply(200, END), refused], "consume", "t")[0].code == 4
