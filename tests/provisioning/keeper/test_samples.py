"""Samples of a cell's clusters: how they are taken, and the files in which they are written."""

import asyncio
import gzip

import orjson
import pytest

from brokers.objects import FolderObjects
from console.base.runtime.clock import SteadyClock
from provisioning.cell import sample_files
from provisioning.cell.keeper import sample_writer
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.sample_writer import BYTES_PER_S_MAX, SampleWriter
from provisioning.cell.keeper.sampler import Sampler, bounded_content
from provisioning.cell.sample_files import (
    CONTENT_BYTES_MAX,
    FILE_BYTES_MAX,
    HOUR_MS,
    PREFIX,
    SampleFileError,
    TakenSample,
    decode_file,
    encode_file,
    file_key,
    parse_key,
    sample_line,
)
from tests.provisioning.keeper.world import CLUSTER, LIMIT_S, until
from tests.provisioning.keeper.written import newest_written, written_files

EMPTY: dict[str, object] = {"groups": [], "topics": {}}


class LaterClock(SteadyClock):
    """A clock that a test sets."""

    def __init__(self):
        super().__init__()
        self.passed_ms = 0

    def now_ms(self):
        return super().now_ms() + self.passed_ms


class FailingObjects(FolderObjects):
    """A folder that refuses to store anything while `away` is set."""

    away = False

    def put_new(self, key, data):
        if self.away:
            message = "away"
            raise OSError(message)
        return super().put_new(key, data)


@pytest.fixture
def objects(tmp_path):
    return FailingObjects(tmp_path)


@pytest.fixture
def clock():
    return LaterClock()


@pytest.fixture
def writer(objects, clock):
    return SampleWriter(objects, clock=clock, metrics=Metrics(), interval_ms=30_000)


def groups(*names):
    return {"groups": [{"group": name} for name in names], "topics": {}}


def written(objects):
    return list(written_files(objects.root))


def test_a_file_has_what_changed_since_the_last_one(objects, writer, clock):
    async def scenario():
        for name in ("cl_a", "cl_b"):
            writer.offer(name, 1, groups("x"))
        assert await writer.write()
        clock.passed_ms += 30_000
        writer.offer("cl_a", 2, groups("x"))
        writer.offer("cl_b", 2, groups("x", "y"))
        assert await writer.write()
        assert await writer.write(), "nothing is new"

    asyncio.run(scenario())
    first, second = written(objects)
    assert [sample.cluster_id for sample in first.samples] == ["cl_a", "cl_b"]
    assert first.whole
    assert second.samples == [TakenSample("cl_b", 2, groups("x", "y"))]
    assert second.same == {"cl_a": 2}
    assert not second.whole


def test_every_hour_a_file_has_all(objects, writer, clock):
    async def scenario():
        writer.offer("cl_a", 1, groups("x"))
        await writer.write()
        clock.passed_ms += HOUR_MS
        await writer.write()

    asyncio.run(scenario())
    first, second = written(objects)
    assert (first.whole, second.whole) == (True, True)
    assert second.samples == first.samples


def test_a_file_that_could_not_be_written_is_written_with_the_newest(objects, writer):
    async def scenario():
        objects.away = True
        writer.offer("cl_a", 1, groups("x"))
        assert not await writer.write()
        assert writer.failing == "away"
        writer.offer("cl_a", 2, groups("y"))
        assert not await writer.write()
        objects.away = False
        assert await writer.write()
        assert writer.failing is None

    asyncio.run(scenario())
    (file,) = written(objects)
    assert file.samples == [TakenSample("cl_a", 2, groups("y"))]


def test_the_last_sample_is_written_at_once_and_then_forgotten(objects, writer):
    async def scenario():
        running = asyncio.create_task(writer.run())
        async with asyncio.timeout(LIMIT_S):
            writer.offer("cl_b", 1, groups("x"))
            await writer.offer_last("cl_a", 5, groups("x"))
            assert newest_written(objects.root, "cl_a") == TakenSample("cl_a", 5, groups("x"))
            # It is written although it equals the one before: the lag is that of its moment.
            await writer.offer_last("cl_b", 6, groups("x"))
        running.cancel()
        await asyncio.wait({running})
        count_before = len(written(objects))
        await writer.write()
        assert len(written(objects)) == count_before

    asyncio.run(scenario())
    assert newest_written(objects.root, "cl_b") == TakenSample("cl_b", 6, groups("x"))


def test_a_last_sample_outlives_a_store_that_is_away(objects, writer, monkeypatch):
    monkeypatch.setattr(sample_writer, "RETRY_S", 0.01)

    async def scenario():
        objects.away = True
        running = asyncio.create_task(writer.run())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await writer.offer_last("cl_a", 5, groups("x"))
        objects.away = False
        await until(lambda: newest_written(objects.root, "cl_a") is not None)
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(scenario())
    assert newest_written(objects.root, "cl_a") == TakenSample("cl_a", 5, groups("x"))


def test_an_older_last_sample_replaces_no_newer_one(objects, writer):
    """As one that an earlier release left in the metadata store."""

    async def scenario():
        writer.offer("cl_a", 9, groups("new"))
        await writer.offer_last("cl_a", 5, groups("old"))
        await writer.write()

    asyncio.run(scenario())
    (file,) = written(objects)
    assert file.samples == [TakenSample("cl_a", 9, groups("new"))]


def test_a_newer_sample_releases_those_who_wait_for_an_older_one(writer):
    async def scenario():
        waiting = asyncio.create_task(writer.offer_last("cl_a", 5, groups("old")))
        await asyncio.sleep(0)
        writer.offer("cl_a", 9, groups("new"))
        await writer.write()
        async with asyncio.timeout(LIMIT_S):
            await waiting

    asyncio.run(scenario())


def test_a_sample_that_changes_all_the_time_is_written_at_a_rate(objects, writer, clock):
    large = "x" * 10 * BYTES_PER_S_MAX

    async def scenario():
        for passed_ms, name in ((0, "a"), (9_000, "b"), (2_000, "c")):
            clock.passed_ms += passed_ms
            writer.offer("cl_a", clock.passed_ms, groups(large, name))
            await writer.write()

    asyncio.run(scenario())
    contents = [sample.content for file in written(objects) for sample in file.samples]
    assert contents == [groups(large, "a"), groups(large, "c")]


def test_a_later_keeper_has_a_greater_term_whatever_its_clock_says(objects, clock):
    async def scenario():
        for _ in range(2):
            later = SampleWriter(objects, clock=clock, metrics=Metrics(), interval_ms=1)
            later.offer("cl_a", 1, EMPTY)
            await later.write()
            clock.passed_ms -= 5_000

    asyncio.run(scenario())
    terms = {file.term: [s.taken_at_ms for s in file.samples] for file in written(objects)}
    assert len(terms) == 2


def test_a_keeper_that_has_lost_the_cell_writes_nothing(objects, clock):
    leads = [True]
    writer = SampleWriter(
        objects, clock=clock, metrics=Metrics(), interval_ms=1, leads=lambda: leads[0]
    )

    async def scenario():
        writer.offer("cl_a", 1, EMPTY)
        leads[0] = False
        await writer.write()
        assert written(objects) == []
        leads[0] = True
        await writer.write()
        assert len(written(objects)) == 1

    asyncio.run(scenario())


def test_many_large_samples_are_several_files_of_a_bounded_size(objects, writer, clock):
    content = groups("x" * (CONTENT_BYTES_MAX - 1024))

    async def scenario():
        for number in range(30):
            writer.offer(f"cl_{number}", 1, content)
        await writer.write()

    asyncio.run(scenario())
    files = written(objects)
    assert sum(len(file.samples) for file in files) == 30
    assert len(files) == 3
    assert len({file.emitted_at_ms for file in files}) == 3


def test_keys_sort_by_time_and_come_back():
    keys = [
        file_key(at_ms, 7) for at_ms in (1_700_000_000_000, 1_700_000_000_001, 1_800_000_000_000)
    ]
    assert keys == sorted(keys)
    assert all(key.startswith(PREFIX) for key in keys)
    assert parse_key(keys[0]) == sample_files.SampleFileKey(1_700_000_000_000, 7)
    for odd in ("samples/x", keys[0].replace("2023", "2024"), f"{keys[0]}.tmp", keys[0][8:]):
        assert parse_key(odd) is None


def a_file(*lines, **fields):
    first = {"v": 1, "emitted_at_ms": 5, "term": 3, "whole": False} | fields
    return gzip.compress(b"\n".join([orjson.dumps(first), *lines]))


def test_lines_that_cannot_be_read_are_left_out():
    good = sample_line(
        "cl_a", 1, b'{"groups":[{"group":"a\\u0000\\n\\u001b[31m"}],"topics":{"t":[1,2,3]}}'
    )
    bad = [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"cluster":7,"taken_at_ms":1,"content":{}}',
        b'{"cluster":"cl_b","taken_at_ms":-1,"content":{}}',
        b'{"cluster":"cl_b","taken_at_ms":9007199254740993,"content":{}}',
        b'{"cluster":"cl_b","taken_at_ms":true,"content":{}}',
        b'{"cluster":"cl_b","taken_at_ms":1,"content":[]}',
        b'{"cluster":"cl_b","taken_at_ms":1,"content":{"groups":{}}}',
        b'{"cluster":"cl_b","taken_at_ms":1,"content":{"groups":["x"]}}',
        b'{"cluster":"cl_b","taken_at_ms":1,"content":{"groups":[{"group":1}]}}',
        b'{"cluster":"cl_b","taken_at_ms":1,"content":{"topics":{"t":["x",1,1]}}}',
        b'{"cluster":"cl_b","taken_at_ms":1,"content":{"connections":"x"}}',
        sample_line("cl_b", 1, b'{"groups":"%s"}' % (b"x" * CONTENT_BYTES_MAX * 2)),
        b"[" * 100_000,
    ]
    later = [b'{"load":{"cl_a":1}}', b'{"same":{"cl_a":4,"cl_b":"x"}}']
    file = decode_file(a_file(*bad, good, *later))
    assert [sample.cluster_id for sample in file.samples] == ["cl_a"]
    assert file.samples[0].content["groups"] == [{"group": "a\0\n\x1b[31m"}]
    assert file.same == {"cl_a": 4}
    assert file.damaged == len(bad)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no gzip",
        a_file()[:-4],
        gzip.compress(b""),
        gzip.compress(b"\n"),
        a_file(v=2),
        a_file(v="1"),
        a_file(term=None),
        a_file(emitted_at_ms=-1),
        gzip.compress(b"x" * FILE_BYTES_MAX),
    ],
)
def test_a_damaged_file_is_refused(data):
    with pytest.raises(SampleFileError):
        decode_file(data)


def test_a_file_comes_back():
    line = sample_line("cl_a", 4, orjson.dumps(groups("x")))
    data = encode_file([line], {"cl_b": 3}, emitted_at_ms=9, term=8, whole=True)
    file = decode_file(data)
    assert (file.term, file.emitted_at_ms, file.whole) == (8, 9, True)
    assert file.samples == [TakenSample("cl_a", 4, groups("x"))]
    assert file.same == {"cl_b": 3}


class Sampled:
    """A sampler of a cluster, with a writer into a folder."""

    def __init__(self, take, writer, timeout_s=LIMIT_S):
        self.attempts = 0
        self.metrics = Metrics()
        self.sampler = Sampler(
            CLUSTER,
            take,
            writer=writer,
            clock=LaterClock(),
            metrics=self.metrics,
            timeout_s=timeout_s,
            done=self._count,
        )

    def _count(self):
        self.attempts += 1

    async def attempt(self, *, last=False):
        due = self.attempts + 1
        self.sampler.start(last=last)
        await until(lambda: self.attempts == due)


def test_a_sample_that_fails_is_an_attempt(writer, objects):
    async def refuse():
        raise RuntimeError

    async def know_nothing():
        return None

    async def hang():
        await asyncio.Event().wait()

    async def know():
        return EMPTY

    async def scenario():
        for take, timeout_s in ((refuse, LIMIT_S), (know_nothing, LIMIT_S), (hang, 0.05)):
            sampled = Sampled(take, writer, timeout_s)
            before = sampled.sampler.attempted_ms
            await sampled.attempt()
            assert sampled.sampler.attempted_ms > before
        # A store that is away holds up no sleep for longer than the time limit.
        objects.away = True
        sampled = Sampled(know, writer, 0.05)
        await sampled.attempt(last=True)
        objects.away = False
        await writer.write()

    asyncio.run(scenario())
    assert newest_written(objects.root, CLUSTER) is not None


def test_a_large_sample_keeps_what_fits():
    large = [{"group": f"{n}", "members": ["x" * 1000]} for n in range(1000)]
    content = bounded_content({"groups": large, "topics": {}})
    kept = content["groups"]
    assert isinstance(kept, list)
    assert content["truncated"] is True
    assert kept == large[: len(kept)]
    assert CONTENT_BYTES_MAX * 0.9 < len(orjson.dumps(kept)) <= CONTENT_BYTES_MAX
    topics = {f"topic-{n:05}": [n, n, n] for n in range(30_000)}
    content = bounded_content({"groups": large, "topics": topics})
    assert len(orjson.dumps(content)) <= CONTENT_BYTES_MAX
    some = content["topics"]
    assert isinstance(some, dict)
    assert list(some) == sorted(topics)[: len(some)]
    assert content["groups"]
    assert len(some) > 1000
    small = {"groups": large[:2], "topics": {}}
    assert bounded_content(small) is small
