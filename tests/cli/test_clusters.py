"""Clusters and what is in them, as somebody at a terminal manages them."""

import json

from tests.provisioning.control.world import put_status


def test_a_cluster_is_made_deleted_and_restored(freshet, reconcile, cell):
    made = freshet("cluster", "create", "orders", "--region", "local", "--min", "1", "-o", "json")
    assert made.code == 0
    operation = made.json
    assert (operation["type"], operation["state"]) == ("create_cluster", "queued")
    cluster = operation["resource_id"]
    reconcile(cluster)
    put_status(cluster, "running")
    assert reconcile(cluster) is False

    waited = freshet("operation", "wait", operation["id"], "-o", "json")
    assert (waited.code, waited.json["state"]) == (0, "succeeded")
    shown = freshet("cluster", "describe", "orders", "-o", "json").json
    assert (shown["id"], shown["spec"]["scale"]["min"]) == (cluster, 1)
    table = freshet("cluster", "list")
    assert table.out.splitlines()[0].split()[:3] == ["NAME", "ID", "PHASE"]
    assert table.rows()[0][:3] == ["orders", cluster, "running"]

    refused = freshet("cluster", "delete", "orders", "--yes")
    assert refused.code == 5
    assert "freshet cluster update CLUSTER --no-deletion-protection" in refused.err
    assert freshet("cluster", "update", "orders", "--no-deletion-protection").code == 0
    assert freshet("cluster", "delete", "orders", stdin_text="y").code == 2
    assert "asks for confirmation" in freshet("cluster", "delete", "orders").err
    other = freshet("cluster", "delete", "orders", stdin_text="order\n", terminal=True)
    assert (other.code, "Nothing was done" in other.err) == (2, True)
    deleted = freshet("cluster", "delete", cluster, stdin_text="orders\n", terminal=True)
    assert (deleted.code, "delete_cluster" in deleted.out) == (0, True)
    reconcile(cluster)
    put_status(cluster, "asleep", cell.spec(cluster).generation)
    reconcile(cluster)

    back = freshet("cluster", "undelete", "orders", "-o", "json")
    assert (back.code, back.json["resource_id"]) == (0, cluster)


def test_changes_of_a_cluster(freshet, make_cluster):
    cluster = make_cluster()
    changed = freshet(
        "cluster", "update", cluster, "--label", "team=checkout", "--label", "tier=1",
        "--idle-timeout-s", "600", "-o", "json",
    )  # fmt: skip
    assert changed.json["labels"] == {"team": "checkout", "tier": "1"}
    assert changed.json["spec"]["idle_timeout_s"] == 600
    bare = freshet("cluster", "update", cluster, "--no-labels", "-o", "json").json
    assert (bare["labels"], bare["spec"]["idle_timeout_s"]) == ({}, 600)
    scaled = freshet("cluster", "scale", cluster, "--min", "1", "--max", "3", "-o", "json").json
    assert scaled["spec"]["scale"] == {"min": 1, "max": 3}
    many = freshet("cluster", "scale", cluster, "--max", "17")
    assert (many.code, "  --max: Ensure this value is less than" in many.err) == (6, True)
    given = ["--schedule", "mon-wed,FRI 07:00-19:00 Europe/Zurich"]
    given += ["--schedule", "sat-sun 22:00-24:00"]
    awake = freshet("cluster", "scale", cluster, *given, "-o", "json").json["spec"]["schedules"]
    zurich = {"start": "07:00", "end": "19:00", "time_zone": "Europe/Zurich"}
    assert awake == [
        {"days": ["mon", "tue", "wed", "fri"], **zurich},
        {"days": ["sat", "sun"], "start": "22:00", "end": "24:00", "time_zone": "UTC"},
    ]
    unclear = freshet("cluster", "scale", cluster, "--schedule", "monday 7-19")
    assert (unclear.code, "must be like 'mon-fri" in unclear.err) == (2, True)
    none = freshet("cluster", "update", cluster, "--no-schedules", "-o", "json").json
    assert none["spec"]["schedules"] == []
    nothing = freshet("cluster", "update", cluster)
    assert (nothing.code, "There is nothing to change" in nothing.err) == (2, True)
    wrong = freshet("cluster", "update", cluster, "--idle-timeout-s", "1")
    assert wrong.code == 6
    assert "--idle-timeout-s: " in wrong.err
    checked = freshet("cluster", "update", cluster, "--name", "another", "--validate-only")
    assert checked.code == 0
    assert freshet("cluster", "describe", "another").code == 4


def test_json_is_exactly_what_the_api_answers(freshet, api, cluster_id):
    shown = freshet("cluster", "describe", cluster_id, "--output", "json")
    assert shown.json == api().get(f"/clusters/{cluster_id}").json()
    listed = freshet("cluster", "list", FRESHET_OUTPUT="json")
    assert listed.json == api().get("/clusters").json()


def test_topics(freshet, cluster_id):
    given = {"FRESHET_CLUSTER": cluster_id}
    made = freshet(
        "topic", "create", "payments", "--partitions", "6", "--config", "retention.ms=86400000",
        "-o", "json", **given,
    )  # fmt: skip
    assert (made.code, made.json["partitions"]) == (0, 6)
    assert made.json["configs"] == {"retention.ms": "86400000"}
    again = freshet("topic", "create", "payments", **given)
    assert (again.code, "payments" in again.err) == (5, True)

    for begin in (0, 100, 200):
        file = json.dumps([{"name": f"t-{begin + n:03}", "partitions": 1} for n in range(100)])
        many = freshet("topic", "create-many", "--file", "-", stdin_text=file, **given)
        assert (many.code, len(many.rows())) == (0, 100)
    listed = freshet("topic", "list", "-c", cluster_id, "-o", "json").json
    assert (len(listed["items"]), listed["next_cursor"]) == (301, None)
    few = freshet("topic", "list", "--limit", "10", "-o", "json", **given).json
    assert (len(few["items"]), few["next_cursor"] is None) == (10, False)
    assert len(freshet("topic", "list", "--contains", "t-00", **given).rows()) == 10

    changed = freshet(
        "topic", "update", "payments", "--config", "cleanup.policy=delete",
        "--unset", "retention.ms", "-o", "json", **given,
    )  # fmt: skip
    assert changed.json["configs"] == {"cleanup.policy": "delete"}
    more = freshet("topic", "add-partitions", "payments", "--count", "8", "-o", "json", **given)
    assert more.json["partitions"] == 8
    assert len(freshet("topic", "partitions", "payments", **given).rows()) == 8
    fewer = freshet("topic", "add-partitions", "payments", "--count", "2", **given)
    assert fewer.code == 6

    assert freshet("topic", "delete", "payments", **given).code == 2
    assert freshet("topic", "delete", "payments", "--yes", **given).code == 0
    assert freshet("topic", "describe", "payments", **given).code == 4
    assert freshet("deleted-topic", "list", **given).rows()[0][0] == "payments"
    back = freshet("deleted-topic", "undelete", "payments", "-o", "json", **given)
    assert back.json["partitions"] == 8
    freshet("topic", "delete", "payments", "-y", **given)
    assert freshet("deleted-topic", "purge", "payments", "--yes", **given).code == 0
    assert freshet("deleted-topic", "list", **given).err == "There are none.\n"


def test_a_command_finds_its_cluster_by_option_environment_or_name(freshet, make_cluster, home):
    first = make_cluster(name="first")
    make_cluster(name="second")
    which = freshet("topic", "list")
    assert (which.code, "--cluster NAME" in which.err) == (2, True)
    assert freshet("topic", "create", "t", "--cluster", "first").code == 0
    assert freshet("topic", "list", "--cluster", first).rows()[0][0] == "t"
    assert freshet("topic", "list", FRESHET_CLUSTER="second").out == ""
    assert freshet("topic", "list", "-c", "third").code == 4
