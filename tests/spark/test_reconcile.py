"""What usage, the log and the brokers' counters disagree in is found, named and no error."""

import random

import pytest

from spark_usage.errors import JobError
from tests.spark.runs import reconcile_day
from tests.spark.usage_files import (
    DAY_MS,
    DAY_START_MS,
    MINUTE_MS,
    TOPIC,
    egress,
    ingress,
    sum_files,
)


def log_of(partitions, since_ms=DAY_START_MS, until_ms=DAY_START_MS + DAY_MS, unknown=()):
    """A log manifest from (cluster, partition, least, most) and (cluster, topic)."""
    return {
        "version": 1,
        "since_ms": since_ms,
        "until_ms": until_ms,
        "partitions": [
            {
                "cluster_id": cluster,
                "topic_id": TOPIC,
                "partition": partition,
                "bytes_least": least,
                "bytes_most": most,
            }
            for cluster, partition, least, most in partitions
        ],
        "unknown": [{"cluster_id": cluster, "topic_id": topic} for cluster, topic in unknown],
    }


def passed(report, name):
    (check,) = [entry for entry in report["checks"] if entry["name"] == name]
    return check["passed"]


def test_usage_that_is_the_log_gives_no_finding(spark, folder):
    draw = random.Random(4)
    rows = []
    logged: dict[int, int] = {}
    counters: dict[str, int] = {}
    for block in range(200):
        partition, quantity = draw.randrange(5), draw.randrange(1 << 40)
        principal = draw.choice(["User:a", "User:b"])
        rows.append(ingress(block, quantity, partition=partition, principal=principal))
        logged[partition] = logged.get(partition, 0) + quantity
        counters[principal] = counters.get(principal, 0) + quantity
        rows.append(egress(block, quantity, counters[principal], principal=principal))
    draw.shuffle(rows)
    inputs = [folder.add(rows[:150]), folder.add(rows[100:]), folder.add(rows[150:])]
    # Before and after the period, the log is not asked.
    rest = [ingress(900, 1, window_start_ms=DAY_START_MS - MINUTE_MS)]
    inputs.append(folder.add([*rest, ingress(901, 1, window_start_ms=DAY_START_MS + DAY_MS)]))
    log = log_of([("cl_1", partition, total, total) for partition, total in logged.items()])
    report = reconcile_day(spark, folder, inputs, log)
    figures = {
        "metered_bytes": str(sum(logged.values())),
        "bytes_least": str(sum(logged.values())),
        "bytes_most": str(sum(logged.values())),
        "unknown_bytes": "0",
        "partitions": 5,
    }
    assert report["ingress"] == {
        **figures,
        "differing": {},
        "findings": [],
        "clusters": [{"cluster_id": "cl_1", **figures, "differing": 0}],
    }
    assert report["duplicates"] == 300
    assert report["egress"] == {
        "quantity": str(sum(counters.values())),
        "rows": 200,
        "series": 2,
        "differing": {},
        "findings": [],
    }
    assert all(check["passed"] for check in report["checks"])
    # Of the day alone, as a roll-up has them.
    total = str(sum(logged.values()))
    assert report["day_totals"] == {"egress_bytes": total, "ingress_bytes": total}


def test_sums_over_lane_files_are_compared_as_their_blocks_are(spark, folder):
    draw = random.Random(5)
    blocks = []
    logged: dict[int, int] = {}
    counters: dict[str, int] = {}
    for block in range(200):
        # Three blocks a minute, ten a lane file.
        at = {"window_start_ms": DAY_START_MS + block // 3 * MINUTE_MS}
        partition, quantity = draw.randrange(3), draw.randrange(1 << 40)
        principal = draw.choice(["User:a", "User:b"])
        blocks.append(ingress(block, quantity, partition=partition, principal=principal, **at))
        logged[partition] = logged.get(partition, 0) + quantity
        counters[principal] = counters.get(principal, 0) + quantity
        blocks.append(egress(block, quantity, counters[principal], principal=principal, **at))
    # Five lane files in rows of blocks, five as sums, five as both, and five as sums beside a part
    # of their blocks.
    whole, summed, both, partly = (blocks[n : n + 100] for n in range(0, 400, 100))
    rows = [*whole, *sum_files(summed), *both, *sum_files(both), *sum_files(partly)]
    rows += [row for row in partly if draw.random() < 0.5]
    draw.shuffle(rows)
    half = len(rows) // 2
    inputs = [folder.add(rows[: half + 50]), folder.add(rows[half - 50 :])]
    log = log_of([("cl_1", partition, total, total) for partition, total in logged.items()])
    report = reconcile_day(spark, folder, inputs, log)
    total = str(sum(logged.values()))
    assert report["ingress"]["findings"] == report["egress"]["findings"] == []
    assert report["ingress"]["metered_bytes"] == report["egress"]["quantity"] == total
    assert report["day_totals"] == {"egress_bytes": total, "ingress_bytes": total}
    assert all(check["passed"] for check in report["checks"])


def test_a_sum_that_is_missing_is_seen_at_the_counter(spark, folder):
    blocks = [
        egress(block, 10, 10 * (block + 1), window_start_ms=DAY_START_MS + block * MINUTE_MS)
        for block in range(30)
    ]
    first, lost, last = (blocks[n : n + 10] for n in (0, 10, 20))
    report = reconcile_day(spark, folder, [folder.add(sum_files([*first, *last]))], log_of([]))
    (finding,) = report["egress"]["findings"]
    assert (finding["kind"], finding["lane_file"], finding["block"]) == ("usage_missing", 3, None)
    assert finding["cumulative"] - finding["before"] == finding["quantity"] + 10 * len(lost)


def test_each_way_to_differ_from_the_log_is_found(spark, folder):
    quantities = {0: 100, 1: 100, 2: 100, 3: 100, 5: 100}
    inputs = [folder.add([ingress(n, q, partition=n) for n, q in quantities.items()])]
    log = log_of(
        [
            ("cl_1", 0, 40, 40),
            ("cl_1", 0, 60, 60),
            ("cl_1", 1, 90, 110),
            ("cl_1", 2, 0, 99),
            ("cl_1", 3, 101, 200),
            ("cl_1", 4, 1, 1),
            ("cl_2", 0, 0, 10),
        ]
    )
    report = reconcile_day(spark, folder, inputs, log)
    assert report["ingress"]["differing"] == {
        "above_log": 1,
        "below_log": 1,
        "not_in_log": 1,
        "not_metered": 1,
    }
    assert [
        (finding["partition"], finding["kind"], finding["metered_bytes"], finding["bytes_most"])
        for finding in report["ingress"]["findings"]
    ] == [
        (2, "above_log", "100", "99"),
        (3, "below_log", "100", "200"),
        (4, "not_metered", None, "1"),
        (5, "not_in_log", "100", None),
    ]
    assert not passed(report, "ingress_as_logged")
    assert passed(report, "egress_as_counted")
    assert [
        (cluster["cluster_id"], cluster["differing"]) for cluster in report["ingress"]["clusters"]
    ] == [
        ("cl_1", 4),
        ("cl_2", 0),
    ]


def test_a_lane_file_counts_whole_to_the_day_of_its_last_row(spark, folder):
    before, after = DAY_START_MS - MINUTE_MS, DAY_START_MS + DAY_MS
    rows = [
        # The file of these ends on the day, so what it had before counts too.
        ingress(1, 1, lane_file=1, window_start_ms=before),
        ingress(2, 2, lane_file=1),
        # That of these ends after it.
        ingress(3, 4, lane_file=2, window_start_ms=after - MINUTE_MS),
        ingress(4, 8, lane_file=2, window_start_ms=after),
        # For another partition the same file ends on the day.
        ingress(3, 16, lane_file=2, partition=1, window_start_ms=after - MINUTE_MS),
        # A file of another broker has the same number.
        ingress(1, 32, lane_file=2, incarnation=2, window_start_ms=after - MINUTE_MS),
    ]
    log = log_of([("cl_1", 0, 35, 35), ("cl_1", 1, 16, 16)])
    report = reconcile_day(spark, folder, [folder.add(rows)], log)
    assert report["ingress"]["findings"] == []
    assert report["ingress"]["metered_bytes"] == "51"


def test_what_nobody_knows_of_the_log_is_not_compared_and_is_counted(spark, folder):
    other = "0" * 31 + "b"
    rows = [
        ingress(1, 10, cluster_id="cl_1"),
        ingress(2, 20, cluster_id="cl_1", topic_id=other),
        ingress(3, 40, cluster_id="cl_2"),
        ingress(4, 80, cluster_id="cl_3"),
    ]
    log = log_of([("cl_1", 0, 10, 10)], unknown=[("cl_1", other), ("cl_2", None), ("cl_2", other)])
    report = reconcile_day(spark, folder, [folder.add(rows)], log)
    assert report["ingress"]["differing"] == {"not_in_log": 1}
    assert [
        (
            cluster["cluster_id"],
            cluster["metered_bytes"],
            cluster["unknown_bytes"],
            cluster["differing"],
        )
        for cluster in report["ingress"]["clusters"]
    ] == [("cl_1", "10", "20", 0), ("cl_2", "0", "40", 0), ("cl_3", "80", "0", 1)]


def test_each_way_to_differ_from_a_counter_is_found(spark, folder):
    rows = [
        # The first row of a series may come after rows of another day's files.
        egress(1, 10, 110, principal="User:a"),
        egress(2, 5, 116, principal="User:a"),
        egress(3, 5, 120, principal="User:a"),
        egress(4, 5, 100, principal="User:a"),
        egress(5, 0, 100, principal="User:a"),
        egress(1, 10, 9, principal="User:b"),
        egress(9, 1, 1, principal="User:b", incarnation=2),
        egress(10, 1, 2, principal="User:b", incarnation=2),
    ]
    report = reconcile_day(spark, folder, [folder.add(rows)], log_of([]))
    assert [
        (finding["principal"], finding["block"], finding["kind"], finding["before"])
        for finding in report["egress"]["findings"]
    ] == [
        ("User:a", 2, "usage_missing", 110),
        ("User:a", 3, "usage_above_counter", 116),
        ("User:a", 4, "counter_fell", 120),
        ("User:b", 1, "starts_below_usage", None),
    ]
    assert report["egress"]["series"] == 3
    assert not passed(report, "egress_as_counted")


@pytest.mark.parametrize(
    "log",
    [
        log_of([]) | {"version": 2},
        log_of([]) | {"since_ms": None},
        log_of([("cl_1", None, 1, 1)]),
        log_of([("cl_1", "first", 1, 1)]),
        log_of([], unknown=[(None, TOPIC)]),
        {name: value for name, value in log_of([]).items() if name != "unknown"},
    ],
    ids=["version", "period", "incomplete", "mistyped", "nobody", "no list"],
)
def test_a_log_manifest_of_another_kind_is_refused(spark, folder, log):
    with pytest.raises(JobError, match="not a log manifest"):
        reconcile_day(spark, folder, [], log)
    assert not (folder.root / "run_id=run_1").exists()
