"""The parts of the bench harness in which a mistake would give a wrong figure."""

import asyncio
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from confluent_kafka.admin import AdminClient, NewTopic

from brokers import Broker
from brokers.secrets import super_password
from provisioning.cell.status.reader import read_status
from provisioning.kafka import Access, Clients, Connection, list_group_names
from tests.bench import (
    attack,
    bomb_batches,
    charts,
    generators,
    machine,
    payloads,
    proc,
    profile,
    rounds,
)
from tests.bench.__main__ import BENCHES, WITH_CODEC, check_codec
from tests.bench.codec import NAMES, codecs_of
from tests.bench.flame import flame_graph
from tests.bench.held import HalfCore
from tests.bench.placed import BROKER, FILES, Pods, requested_cores
from tests.bench.probe import partitions_with_end, wait_until_served
from tests.bench.report import Earlier, Report, spread
from tests.bench.rounds import Rounds
from tests.bench.sides import chosen, kind_of, rotated
from tests.bench.stand_in_brokers import Server
from tests.brokers import raw_batches
from tests.brokers.batches import read_batch
from tests.peer.processes import bound_command
from tests.ports import free_ports

OUTPUT = """\
5001 records sent, 1000.2 records/sec (0.98 MB/sec), 9.1 ms avg latency, 300.0 ms max latency.
1000 records sent, 500.0 records/sec (0.49 MB/sec), 20.00 ms avg latency, 400.00 ms max latency, \
10 ms 50th, 100 ms 95th, 200 ms 99th, 390 ms 99.9th.
800 records sent, 800.0 records/sec (0.78 MB/sec), 6.00 ms avg latency, 50.00 ms max latency, \
5 ms 50th, 7 ms 95th, 9 ms 99th, 11 ms 99.9th.
"""


def test_report_is_one_line_of_json_with_ours_over_theirs():
    line = Report("name", value=50.0, unit="ms", peer=200.0, details={"rounds": 3}).line()
    assert "\n" not in line
    assert json.loads(line) == {
        "bench": "name",
        "value": 50.0,
        "unit": "ms",
        "peer": 200.0,
        "ratio": 0.25,
        "details": {"rounds": 3},
    }


def test_report_without_a_side_has_no_ratio():
    assert Report("name", value=None, unit="ms", peer=2.0).ratio is None
    assert Report("name", value=1.0, unit="ms", peer=None).ratio is None


def test_report_beside_an_earlier_build_has_its_figures_and_ours_over_them():
    earlier = Earlier("c0ffee", 40.0, {"restart_ms": (50.0, 40.0), "missing": (0.0, 0.0)})
    report = Report("name", value=50.0, unit="ms", peer=200.0, earlier=earlier)
    said = json.loads(report.line())
    assert (said["ratio"], said["before"]) == (
        0.25,
        {
            "commit": "c0ffee",
            "value": 40.0,
            "ratio": 1.25,
            "figures": {
                "restart_ms": {"now": 50.0, "before": 40.0, "ratio": 1.25},
                "missing": {"now": 0.0, "before": 0.0, "ratio": None},
            },
        },
    )
    header, *rows = [row.split() for row in earlier.table().splitlines()]
    assert header == ["now", "before", "now/before"]
    assert rows == [["restart_ms", "50.000", "40.000", "1.250"], ["missing", "0.000", "0.000"]]


def test_medians_of_an_earlier_build_stand_beside_ours():
    samples = {
        "freshet": {"ms": [1.0, 9.0, 2.0], "hits": [1.0]},
        "before": {"ms": [4.0, 3.0, 8.0]},
        "kafka1": {"ms": [100.0]},
    }
    assert rounds.beside_earlier(samples, None, None) is None
    earlier = rounds.beside_earlier(samples, "c0ffee", 4.0)
    assert earlier == Earlier("c0ffee", 4.0, {"ms": (2.0, 4.0)})


def test_spread_keeps_every_sample():
    assert spread([3.0, 1.0, 2.0]) == {
        "median": 2.0,
        "min": 1.0,
        "max": 3.0,
        "samples": [3.0, 1.0, 2.0],
    }


def test_summary_of_producer_performance_is_the_one_after_warm_up():
    summary = list(generators.SUMMARY.finditer(OUTPUT))[-1]
    assert summary.groupdict() == {
        "records": "800",
        "rate": "0.78",
        "p50": "5",
        "p99": "9",
        "p999": "11",
    }


METRICS = """\
producer-metrics:outgoing-byte-rate:{client-id=perf-producer-client}    : 8123.400
producer-metrics:outgoing-byte-total:{client-id=perf-producer-client}   : 1234567.000
producer-node-metrics:outgoing-byte-total:{client-id=p, node-id=node-1} : 999.000
"""


def test_bytes_that_producer_performance_sent_are_those_to_all_brokers():
    sent = generators.OUTGOING_BYTES.findall(METRICS)
    assert sent == ["1234567.000"]


def test_a_rate_on_the_wire_is_that_of_the_compressed_bytes():
    load = generators.Load("", "topic", 4 * 1024, 1024, codec="lz4")
    seen = {"seconds": 2.0, "wire_bytes": 2**20, "cpu_seconds": 1.0, "gap_max_ms": 0, "max_ms": 0}
    seen |= {"p50_ms": 1, "p99_ms": 2, "p999_ms": 3}
    produced = generators.produced_of(load, {**seen, "delivered_by_second": [2048, 2048]})
    assert (produced.mib_per_s, produced.compression, produced.wire_mib_per_s) == (2.0, 4.0, 0.5)


def test_a_chart_shows_every_second_with_records_and_no_other():
    chart = charts.second_by_second([1000, 500, 0, 1, 3000], full=1000)
    assert chart == "█▄ ▁█"


def test_bars_of_gaps_are_in_proportion():
    bars = charts.longest_gaps({"ours": [10, 100], "theirs": [5000]}).splitlines()
    assert [bar.count("█") for bar in bars] == [1, charts.BAR_WIDTH]
    assert bars[0].endswith("100 ms")


READ = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, ms
2026-11-22 15:00:00:000, 2026-11-22 15:00:02:000, 97.6563, 48.8281, 100000, 50000.0, 300, 1700
"""


def test_rate_of_consumer_performance_is_that_of_its_row():
    row = generators.READ_ROW.search(READ)
    assert row is not None
    assert (row["rate"], row["n"]) == ("48.8281", "100000")


def test_percentiles_of_end_to_end_latency_are_read():
    said = "Avg latency: 1.4012 ms\n\nPercentiles: 50th = 1, 99th = 3, 99.9th = 12\n"
    match = generators.PERCENTILES.search(said)
    assert match is not None
    assert match.groupdict() == {"p50": "1", "p99": "3", "p999": "12"}


def test_sides_rotate_and_are_checked():
    assert rotated(["a", "b", "c"], 4) == ["b", "c", "a"]
    assert chosen(["a", "b"], None) == ["a", "b"]
    assert chosen(["a", "b"], ["b"]) == ["b"]
    with pytest.raises(ValueError, match="no such side"):
        chosen(["a", "b"], ["c"])


def test_an_earlier_build_is_a_side_only_where_a_commit_is_given():
    sides = ("freshet", "kafka1")
    assert chosen(sides, None, "c0ffee") == ["freshet", "before", "kafka1"]
    assert chosen(sides, ["before"], "c0ffee") == ["before"]
    with pytest.raises(ValueError, match=r"no such side: \['before'\]"):
        chosen(sides, ["before"])
    assert [kind_of(name) for name in ("before", "freshet", "kafka1")] == [
        "freshet",
        "freshet",
        "kafka1",
    ]


def test_usage_counts_cpu_and_memory_of_a_process():
    pid = os.getpid()
    before = proc.usage([pid])
    began = time.process_time()
    while time.process_time() - began < 0.2:
        sum(range(1000))
    used = proc.usage([pid]).since(before)
    # The kernel counts in ticks of a hundredth of a second.
    assert used.cpu_seconds >= 0.15
    assert proc.resident_mib([pid]) >= proc.private_mib([pid]) > 1


@pytest.fixture
def no_limits(monkeypatch, tmp_path):
    """Rounds that keep their figures in a folder of the test and measure no machine."""
    monkeypatch.setattr(rounds, "KEPT", tmp_path)
    monkeypatch.setattr(machine, "limits", lambda *_: {"cpus": 2})


def turns(parameters):
    return Rounds("name", ["ours", "theirs"], 2, parameters)


@pytest.mark.usefixtures("no_limits")
def test_rounds_that_were_cut_off_go_on_where_they_were():
    asked = []

    def measure(side):
        asked.append(side)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return {"figure": float(len(asked))}

    first = turns({"scale": 1})
    assert first.fact("rate", lambda: 7) == 7
    with pytest.raises(KeyboardInterrupt):
        first.play(measure)
    again = turns({"scale": 1})
    assert again.fact("rate", lambda: pytest.fail("it is known")) == 7
    samples = again.play(measure)
    # The order rotates: the second round begins with theirs, which was cut off.
    assert asked == ["ours", "theirs", "theirs", "theirs", "ours"]
    assert samples == {"ours": {"figure": [1.0, 5.0]}, "theirs": {"figure": [2.0, 4.0]}}
    assert rounds.median(samples, "ours", "figure") == 3.0
    assert turns({"scale": 1}).facts == {}


@pytest.mark.usefixtures("no_limits")
def test_rounds_of_other_parameters_begin_anew():
    turns({"scale": 1}).fact("rate", lambda: 7)
    assert turns({"scale": 2}).fact("rate", lambda: 8) == 8


@pytest.mark.usefixtures("no_limits")
@pytest.mark.parametrize("file", ["_core.abi3.so", "run.py"])
@pytest.mark.parametrize("changed", ["freshet", "before"])
def test_rounds_of_another_build_of_a_side_begin_anew(monkeypatch, tmp_path, changed, file):
    pythons = {name: tmp_path / name / "bin" / "python" for name in ("freshet", "before")}
    packages = {
        name: python.parents[1] / "lib/python3.11/site-packages/brokers"
        for name, python in pythons.items()
    }
    for package in packages.values():
        package.mkdir(parents=True)
        (package / file).write_text("one")
    monkeypatch.setattr(rounds, "PYTHONS", pythons)

    def turns_of_both():
        return Rounds("name", ["freshet", "before"], 2, {})

    turns_of_both().fact("rate", lambda: 7)
    assert turns_of_both().facts == {"rate": 7}
    (packages[changed] / file).write_text("two")
    assert turns_of_both().facts == {}


@pytest.mark.usefixtures("no_limits")
def test_figures_of_a_codec_are_kept_apart_from_those_of_another():
    asked = []

    def measure(side, codec):
        asked.append((side, codec))
        if len(asked) == 6:
            raise KeyboardInterrupt
        return {"figure": float(len(asked))}

    codecs = ["none", "lz4"]
    with pytest.raises(KeyboardInterrupt):
        turns({"codecs": codecs}).play_variants(codecs, measure)
    assert asked[:4] == [("ours", "none"), ("theirs", "none"), ("ours", "lz4"), ("theirs", "lz4")]
    # The second round begins with the other codec, and with the other side.
    assert asked[4:] == [("theirs", "lz4"), ("ours", "lz4")]
    samples = turns({"codecs": codecs}).play_variants(codecs, measure)
    assert samples == {
        "none": {"ours": {"figure": [1.0, 9.0]}, "theirs": {"figure": [2.0, 8.0]}},
        "lz4": {"ours": {"figure": [3.0, 7.0]}, "theirs": {"figure": [4.0, 5.0]}},
    }
    together = rounds.named_by_variant(samples)
    assert together["ours"] == {"none figure": [1.0, 9.0], "lz4 figure": [3.0, 7.0]}


@pytest.mark.usefixtures("no_limits")
def test_rounds_of_one_codec_do_not_go_on_with_those_of_another():
    def measure(side, codec):
        if side == "theirs":
            raise KeyboardInterrupt
        return {codec: 1.0}

    with pytest.raises(KeyboardInterrupt):
        turns({"codecs": ["lz4"]}).play_variants(["lz4"], measure)
    samples = turns({"codecs": ["zstd"]}).play_variants(["zstd"], lambda _, codec: {codec: 2.0})
    assert samples["zstd"]["ours"] == {"zstd": [2.0, 2.0]}


def test_codec_is_one_by_its_name_or_those_of_all():
    assert codecs_of(None) == ["none"]
    assert codecs_of("snappy") == ["snappy"]
    assert codecs_of("all") == ["none", "lz4", "zstd"]
    with pytest.raises(ValueError, match="no such codec: lz5"):
        codecs_of("lz5")


@pytest.mark.parametrize("bench", BENCHES)
def test_a_codec_is_refused_where_producers_do_not_compress(bench):
    if bench in WITH_CODEC:
        check_codec(bench, "zstd")
    else:
        with pytest.raises(ValueError, match=f"{bench} takes no codec"):
            check_codec(bench, "zstd")


def test_records_are_json_of_one_size_and_no_two_are_the_same():
    records = list(payloads.records_of(1024, 500))
    assert {len(record) for record in records} == {1024}
    assert len(set(records)) == 500
    assert records[7].count(b"\n") == 0
    assert json.loads(records[7])["sequence"] == 7
    assert records == list(payloads.records_of(1024, 500))
    with pytest.raises(ValueError, match="more than 100"):
        list(payloads.records_of(100, 1))


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("count", [100, 1000])
def test_batches_of_records_compress_to_a_third_up_to_a_fifth(codec, count):
    records = raw_batches.records(list(payloads.records_of(1024, count)))
    assert 3.0 <= len(records) / len(raw_batches.compressed[NAMES.index(codec)](records)) <= 5.0


@pytest.mark.parametrize("codec", NAMES)
def test_prepared_batches_hold_the_records_under_their_codec(codec, tmp_path, monkeypatch):
    monkeypatch.setattr(payloads, "BUILD", tmp_path)
    monkeypatch.setattr(payloads, "RECORDS", 60)
    monkeypatch.setattr(payloads, "RECORDS_A_BATCH", 40)
    file = payloads.batch_file(codec, 1024)
    assert payloads.batch_file(codec, 1024) == file
    assert list(tmp_path.iterdir()) == [file]
    raw, values, sizes = file.read_bytes(), [], []
    while raw:
        (size,) = struct.unpack_from(">I", raw)
        batch = read_batch(raw[4 : 4 + size], codec)
        assert (batch.size, batch.attributes) == (size, NAMES.index(codec))
        values += [record.value for record in batch.records()]
        sizes.append(batch.count)
        raw = raw[4 + size :]
    assert sizes == [40, 20]
    assert values == list(payloads.records_of(1024, 60))


def test_records_that_are_sent_one_by_one_have_no_codec():
    with pytest.raises(ValueError, match="are not compressed"):
        generators.run_light(generators.Load("", "t", 1, 1024, one_by_one=True, codec="lz4"))
    with pytest.raises(ValueError, match="1000 records each"):
        generators.run_prepared(generators.Load("", "t", 1500, 1024, codec="lz4"))


def unpacked_sizes(codec, payload):
    """The bytes that a batch's records have, without ever holding all of them."""
    unpack = {
        "gzip": zlib.decompressobj(wbits=31).decompress,
        "lz4": lz4.frame.LZ4FrameDecompressor().decompress,
        "zstd": zstandard.ZstdDecompressor().decompressobj().decompress,
    }[codec]
    return sum(len(unpack(payload[at : at + 4096])) for at in range(0, len(payload), 4096))


@pytest.mark.parametrize("bomb", [*bomb_batches.BOMBS[:-1], bomb_batches.Bomb("zstd", 130)])
def test_a_bomb_is_a_sound_batch_of_at_most_a_mebibyte(bomb):
    raw = bomb.batch()
    batch = read_batch(raw, bomb.name)
    assert len(raw) == batch.size <= 2**20
    assert batch.attributes == NAMES.index(bomb.codec)
    if bomb.codec == "snappy":
        (record,) = batch.records()
        assert record.value == bytes(bomb.mib * 2**20)
    else:
        zeros = bomb.mib * 2**20
        assert zeros < unpacked_sizes(bomb.codec, batch.payload) <= zeros + 30 * batch.count


def test_a_bomb_that_a_codec_cannot_make_is_refused():
    with pytest.raises(ValueError, match="more than 1048576"):
        bomb_batches.Bomb("snappy", 30).batch()


@pytest.mark.parametrize(("damage", "code"), [(0, "0"), (1, "2")])
def test_attackers_count_what_a_broker_answers(damage, code):
    batch = bytearray(raw_batches.sound_batch([b"one"], base_timestamp=time.time_ns() // 10**6))
    batch[-1] ^= damage
    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("attacked", 2)])["attacked"].result()
        attackers = attack.Attack(broker.bootstrap, "attacked", bytes(batch), bytes_per_s=10**4)
        threads = [threading.Thread(target=attackers.send_from, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        limit = time.monotonic() + 30
        while attackers.answers.total() < 5 and time.monotonic() < limit:
            threading.Event().wait(0.05)
        attackers.stopped.set()
        for thread in threads:
            thread.join()
    assert attackers.answers.total() >= 5
    assert set(attackers.answers) == {code}


def test_attackers_count_connections_that_are_closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        attackers = attack.Attack(f"{host}:{port}", "attacked", b"batch", bytes_per_s=10**4)
        thread = threading.Thread(target=attackers.send_from, args=(0,))
        thread.start()
        for _ in range(2):
            server.accept()[0].close()
        attackers.stopped.set()
    thread.join()
    assert attackers.answers.keys() == {attack.CLOSED}


def test_processes_together_are_held_to_half_a_core():
    with HalfCore() as half_core:
        loops = [half_core.start([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            pids = [loop.pid for loop in loops]
            before, began = proc.usage(pids), time.monotonic()
            threading.Event().wait(1.0)
            used, seconds = proc.usage(pids).since(before), time.monotonic() - began
            niceness = {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids}
        finally:
            for loop in loops:
                loop.kill()
                loop.communicate()
    if half_core.held_by == "cgroup":
        assert 0 < used.cpu_seconds <= 0.7 * seconds
    else:
        assert niceness == {19}


def test_processes_share_a_cpu_as_their_pods_share_a_node():
    assert all(requested_cores(program) > 0 for program in FILES)
    command, cpu = [sys.executable, "-c", "while True: pass"], str(min(os.sched_getaffinity(0)))
    with Pods() as pods:
        loops = [subprocess.Popen(bound_command(command, cpu)) for _ in range(2)]
        try:
            for program, loop in zip(("gateway", BROKER), loops, strict=True):
                pods.place(program, loop.pid)
            before = [proc.usage([loop.pid]) for loop in loops]
            used = [0.0, 0.0]
            # Where other processes take the CPU, it takes longer until these had enough.
            while sum(used) < 1.0:
                threading.Event().wait(0.1)
                after = [proc.usage([loop.pid]) for loop in loops]
                used = [a.since(b).cpu_seconds for a, b in zip(after, before, strict=True)]
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
    expected = requested_cores("gateway") / requested_cores(BROKER)
    if pods.placed_by == "nothing":
        expected = 1.0
    assert used[0] / used[1] == pytest.approx(expected, rel=0.3)


def test_peak_of_memory_begins_anew():
    pid, grown = os.getpid(), bytearray(64 << 20)
    grown[::4096] = bytes(len(grown[::4096]))
    assert proc.peak_resident_mib([pid]) >= proc.resident_mib([pid]) > 64
    del grown
    before = proc.peak_resident_mib([pid])
    proc.forget_peak([pid])
    assert proc.peak_resident_mib([pid]) < before - 32


STACKS = """\
freshet  101 5.1:   2004008 cpu-clock:pppH:
\tffffffff81 copy_from_iter+0x10 ([kernel.kallsyms])
\tffffffff82 __x64_sys_pwritev+0x10 ([kernel.kallsyms])
\tffffffff83 do_syscall_64+0x10 ([kernel.kallsyms])
\t    7f01 freshet_world::env::real::pwritev::h0123456789abcdef+0x4 (/x/_core.abi3.so)
\t    7f02 start_thread (/lib/libc.so.6)

freshet  102 5.2:   2004008 cpu-clock:pppH:
\t    7f03 <freshet_storage::lane::writer::Writer as core::Future>::poll+0x9 (/x/_core.abi3.so)
\t    7f04 [unknown] (/x/_core.abi3.so)
"""


def test_stacks_of_a_profile_are_summed_by_module():
    stacks = list(profile.stacks_of(STACKS.splitlines(keepends=True)))
    assert stacks[0] == (
        "freshet",
        "start_thread",
        "freshet_world::env::real::pwritev",
        "do_syscall_64_[k]",
        "__x64_sys_pwritev_[k]",
        "copy_from_iter_[k]",
    )
    assert stacks[1][1] == "[_core.abi3.so]"
    modules = ["world::env::real (kernel: pwritev)", "storage::lane::writer"]
    assert [profile.module_of(stack) for stack in stacks] == modules
    shares = profile.summary(Counter(stacks))
    assert shares["modules"] == dict.fromkeys(modules, 50.0)
    assert shares["functions_and_what_they_call"]["start_thread"] == 50.0


BOX = re.compile(r'<title>(.+?)</title><rect x="(.+?)" y="(.+?)" width="(.+?)"')


def test_boxes_of_a_flame_graph_are_as_wide_as_their_samples():
    drawn = flame_graph(Counter({("a", "f<T>"): 3, ("a", "g"): 1}))
    boxes = {name: (float(x), int(y), float(width)) for name, x, y, width in BOX.findall(drawn)}
    assert boxes["a (100.00 %)"] == (0.0, 32 - 16, 1600.0)
    assert boxes["f&lt;T&gt; (75.00 %)"] == (0.0, 0, 1200.0)
    assert boxes["g (25.00 %)"] == (1200.0, 0, 400.0)


def serve_once(server):
    """Answers ApiVersions and Metadata on one connection, as a broker with one node would."""
    connection, _ = server.accept()
    bodies = [struct.pack(">hi", 0, 0), struct.pack(">ii", 1, 0)]
    with connection:
        for body in bodies:
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            request = connection.recv(size, socket.MSG_WAITALL)
            correlation = request[4:8]
            connection.sendall(struct.pack(">i", 4 + len(body)) + correlation + body)


def test_probe_returns_once_a_broker_answers():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_once, args=(server,))
        thread.start()
        versions, metadata = wait_until_served(
            process, server.getsockname()[1], since=time.monotonic()
        )
        thread.join()
    process.communicate()
    assert 0 < versions <= metadata


def test_probe_gives_up_when_the_process_has_ended():
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(RuntimeError, match="exit status 3"):
            wait_until_served(process, unused.getsockname()[1], since=time.monotonic())


def test_probe_counts_the_partitions_that_are_open():
    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for created in admin.create_topics([NewTopic("one", 1), NewTopic("two", 2)]).values():
            created.result()
        counted = partitions_with_end(broker.bootstrap, {"one": 1, "two": 3, "none": 1})
    assert counted == {("one", 0), ("two", 0), ("two", 1)}


class OnePod:
    """A driver for which `127.0.0.77` is the address of a pod of the cluster."""

    def cluster_at(self, address):
        return {"127.0.0.77": "cl_one"}.get(address)


def test_a_stand_in_answers_what_a_keeper_asks_at_the_address_of_a_pod_alone():
    secret, (metrics, kafka) = bytes(32), free_ports(2)
    addresses = ["127.0.0.77", "127.0.0.78"]

    async def scenario():
        server = Server(OnePod(), secret, kafka)
        async with (
            await asyncio.start_server(server.metrics, addresses, metrics),
            await asyncio.start_server(server.kafka, addresses, kafka),
        ):
            picture = await read_status(f"127.0.0.77:{metrics}", timeout_s=30)
            assert picture is not None
            assert picture.connections == 0
            assert await read_status(f"127.0.0.78:{metrics}", timeout_s=30) is None
            password = super_password(secret, "cl_one")
            access = Access(Clients(), Connection(f"127.0.0.77:{kafka}", password))
            assert await asyncio.to_thread(list_group_names, access) == []

    asyncio.run(scenario())
