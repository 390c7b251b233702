"""Groups as brokers say them now: read once for all who look, and within bounds."""

import asyncio
import os
from dataclasses import replace

import pytest

from provisioning.cell.status import kept
from provisioning.cell.status.kept import Brokers, KeptPictures, ReadingPace, shared_pictures
from tests.provisioning.keeper.world import LIMIT_S, until
from tests.provisioning.status.answers import answering, page, record

CLUSTER = "cl_a"
PACE = ReadingPace(
    interval_s=1.0, work_share=1.0, timeout_s=LIMIT_S, refused_s=10.0, kept_s=LIMIT_S
)


class Clock:
    """A clock that a test sets, in seconds."""

    def __init__(self):
        self.now_s = 1_000.0

    def __call__(self):
        return self.now_s


def groups(*names, cluster=CLUSTER, **fields):
    """An answer with groups of these names."""
    changes = [["g", n, name, "Empty", "", "", 0] for n, name in enumerate(names)]
    return page(record(cluster=cluster, changes=changes, **fields))


def at(*addresses, cluster=CLUSTER):
    """The brokers at these addresses."""
    return Brokers(cluster, tuple(enumerate(addresses)))


async def names(pictures, brokers, **how):
    """The names of groups that somebody sees who looks now."""
    return await asyncio.to_thread(pictures.look, brokers, lambda table: table.names, **how)


def test_those_who_look_at_once_share_one_reading():
    """A server holds its answer until all of them wait for it."""
    viewers = 20

    async def scenario():
        waiting, held = [], asyncio.Event()

        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            waiting.append(1)
            await held.wait()
            writer.write(groups("a", "b"))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        pictures, came = KeptPictures(PACE), []

        def look():
            came.append(1)
            return pictures.look(at(address), lambda table: table.names)

        async with server:
            looks = [asyncio.create_task(asyncio.to_thread(look)) for _ in range(viewers)]
            # As many threads as the pool has wait; the others come when these are done.
            await until(lambda: bool(waiting) and len(came) > 1)
            held.set()
            assert await asyncio.gather(*looks) == [("a", "b")] * viewers
        assert len(waiting) == 1

    asyncio.run(scenario())


def test_a_reading_is_shared_for_a_second_and_the_next_goes_on_from_it():
    first = groups("a", next="7.4.2")
    second = page(
        record(cluster=CLUSTER, next="7.4.3", changes=[["g", 9, "b", "Empty", "", "", 0]])
    )

    async def scenario():
        async with answering(first, second) as (address, requests):
            clock = Clock()
            pictures = KeptPictures(PACE, clock)
            assert await names(pictures, at(address)) == ("a",)
            clock.now_s += 0.9
            assert await names(pictures, at(address)) == ("a",)
            assert requests == ["/status"]
            clock.now_s += 0.2
            assert await names(pictures, at(address)) == ("a", "b")
            assert requests == ["/status", "/status?since=7.4.2"]

    asyncio.run(scenario())


def test_who_needs_what_was_just_changed_reads_anew():
    async def scenario():
        async with answering(groups("a"), groups("b", anew=1)) as (address, requests):
            clock = Clock()
            pictures = KeptPictures(PACE, clock)
            assert await names(pictures, at(address)) == ("a",)
            clock.now_s += 0.001
            assert await names(pictures, at(address), anew=True) == ("b",)
            assert len(requests) == 2
            assert await names(pictures, at(address)) == ("b",)
            assert len(requests) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        # Its address has come to be that of another cluster's broker.
        groups("a", cluster="cl_b"),
        # An earlier release does not say of which cluster it is.
        page(record(changes=[["g", 1, "a", "Empty", "", "", 0]])),
        page(b"{}"),
        b"",
    ],
)
def test_what_is_no_status_of_the_cluster_is_refused_for_a_while(answer):
    async def scenario():
        async with answering(answer, groups("ours")) as (address, requests):
            clock = Clock()
            pictures = KeptPictures(PACE, clock)
            assert await names(pictures, at(address)) is None
            clock.now_s += PACE.refused_s - 0.1
            assert await names(pictures, at(address)) is None
            assert await names(pictures, at(address), anew=True) is None
            assert len(requests) == 1
            clock.now_s += 0.2
            assert await names(pictures, at(address)) == ("ours",)

    asyncio.run(scenario())


def test_a_broker_of_another_cluster_is_refused_also_where_it_goes_on():
    """The new owner of the address may be at the same incarnation and place."""

    async def scenario():
        theirs = groups("theirs", cluster="cl_b")
        async with answering(groups("ours"), theirs) as (address, _):
            pictures = KeptPictures(replace(PACE, interval_s=0.0))
            assert await names(pictures, at(address)) == ("ours",)
            assert await names(pictures, at(address), anew=True) is None

    asyncio.run(scenario())


def test_brokers_that_do_not_answer_hold_nobody_for_long():
    async def scenario():
        async with answering(None) as (address, requests):
            pictures = KeptPictures(replace(PACE, timeout_s=0.2))
            looks = [names(pictures, at(address)) for _ in range(3)]
            assert await asyncio.gather(*looks) == [None] * 3
            assert len(requests) == 1
        assert await names(KeptPictures(PACE), at(address)) is None, "nobody listens"
        assert await names(KeptPictures(PACE), at()) is None, "no address is known"

    asyncio.run(scenario())


def test_all_brokers_of_a_cluster_have_to_answer():
    async def scenario():
        async with answering(groups("a")) as (a, _), answering(groups("b")) as (b, _):
            assert await names(KeptPictures(PACE), at(a, b)) == ("a", "b")
            assert await names(KeptPictures(PACE), at(a, "127.0.0.1:1")) is None

    asyncio.run(scenario())


def test_a_broker_that_loads_its_groups_is_asked_again_soon():
    async def scenario():
        async with answering(groups(loading=1), groups("a")) as (address, _):
            clock = Clock()
            pictures = KeptPictures(PACE, clock)
            assert await names(pictures, at(address)) is None
            clock.now_s += PACE.interval_s
            assert await names(pictures, at(address)) == ("a",)

    asyncio.run(scenario())


def test_brokers_that_were_replaced_are_read_from_the_beginning():
    async def scenario():
        async with answering(groups("a")) as (old, _), answering(groups("b")) as (new, requests):
            pictures = KeptPictures(PACE)
            assert await names(pictures, at(old)) == ("a",)
            assert await names(pictures, at(new)) == ("b",)
            assert requests == ["/status"]
            assert len(pictures) == 1

    asyncio.run(scenario())


def test_a_status_that_takes_much_work_is_read_less_often():
    """Also where somebody needs it anew: one cluster does not get the process for itself."""

    async def scenario():
        async with answering(groups("a"), groups("b", anew=1)) as (address, requests):
            clock = Clock()
            pictures = KeptPictures(replace(PACE, work_share=1e-9), clock)
            assert await names(pictures, at(address)) == ("a",)
            clock.now_s += 100.0
            assert await names(pictures, at(address)) == ("a",)
            assert await names(pictures, at(address), anew=True) is None
            assert len(requests) == 1

    asyncio.run(scenario())


def test_a_picture_beyond_its_bytes_is_refused(monkeypatch):
    monkeypatch.setattr(kept, "BROKER_BYTES_MAX", 10_000)

    async def scenario():
        async with answering(groups("a" * 9_000)) as (small, _):
            assert await names(KeptPictures(PACE), at(small)) == ("a" * 9_000,)
        async with answering(groups("a" * 10_000)) as (large, _):
            assert await names(KeptPictures(PACE), at(large)) is None

    asyncio.run(scenario())


@pytest.mark.parametrize(("limit", "most"), [("CLUSTERS_MAX", 2), ("BYTES_MAX", 2_500)])
def test_of_too_many_clusters_the_one_that_was_looked_at_last_stays(monkeypatch, limit, most):
    monkeypatch.setattr(kept, limit, most)

    async def scenario():
        async with (
            answering(groups("a" * 500, cluster="cl_1")) as (first, of_first),
            answering(groups("b" * 500, cluster="cl_2")) as (second, of_second),
            answering(groups("c" * 500, cluster="cl_3")) as (third, _),
        ):
            pictures = KeptPictures(PACE)
            for cluster, address in (("cl_1", first), ("cl_2", second), ("cl_1", first)):
                assert await names(pictures, at(address, cluster=cluster))
            assert await names(pictures, at(third, cluster="cl_3"))
            assert len(pictures) == 2
            assert (len(of_first), len(of_second)) == (1, 1)
            assert await names(pictures, at(second, cluster="cl_2"))
            assert len(of_second) == 2, "it was looked at the longest ago"

    asyncio.run(scenario())


def test_what_nobody_looks_at_is_dropped():
    async def scenario():
        async with answering(groups("a")) as (address, _):
            pictures = KeptPictures(replace(PACE, kept_s=0.1))
            assert await names(pictures, at(address)) == ("a",)
            await until(lambda: len(pictures) == 0)

    asyncio.run(scenario())


def test_a_forked_child_begins_anew():
    before, (reader, writer) = shared_pictures(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"new" if shared_pictures() is not before else b"old")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 3) == b"new"
    assert shared_pictures() is before
