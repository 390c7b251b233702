"""Reading a broker's status: what is refused, late, or cut off."""

import asyncio

import pytest

from provisioning.cell.status.reader import StatusReader, read_status
from tests.provisioning.keeper.world import LIMIT_S
from tests.provisioning.status.answers import answering, page, record


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (page(record(connections=3)), 3),
        (page(record()).replace(b"200 OK", b"503 No"), None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n", None),
        (page(b"{}"), None),
        (page(b"not JSON"), None),
        (b"\r\n\r\n", None),
        (b"x" * 100_000, None),
        (b"", None),
    ],
)
def test_a_status_is_a_record_or_nothing(answer, connections):
    async def scenario():
        async with answering(answer) as (address, _):
            picture = await read_status(address, timeout_s=LIMIT_S)
            assert (picture and picture.connections) == connections

    asyncio.run(scenario())


def test_a_read_does_not_wait_for_ever():
    async def scenario():
        async with answering(None) as (address, _):
            assert await read_status(address, timeout_s=0.05) is None
        assert await read_status(address, timeout_s=LIMIT_S) is None, "nobody listens"

    asyncio.run(scenario())


def test_a_read_goes_on_where_the_last_one_ended_over_one_connection():
    """And over another one where the broker has ended the first."""
    first = page(record(next="7.4.2", more=1, changes=[["t", 1, "a"]]))
    second = page(record(next="7.4.4", changes=[["t", 2, "b"]]))

    async def scenario(lasting):
        async with answering(first, second, lasting=lasting) as (address, requests):
            reader = StatusReader(address)
            assert await reader.read(timeout_s=LIMIT_S)
            assert requests == ["/status", "/status?since=7.4.2"]
            assert reader.picture.entries("t") == {(1,): ("a", None), (2,): ("b", None)}
            assert await reader.read(timeout_s=LIMIT_S)
            assert requests[2:] == ["/status?since=7.4.4"]
            reader.close()

    for lasting in (1, 2, 3, 100):
        asyncio.run(scenario(lasting))


def test_a_record_that_cannot_be_used_makes_the_next_read_begin_anew():
    answers = [
        page(record(next="7.4.2", changes=[["t", 1, "a"]])),
        page(record(changes=[["t", 1, 3]])),
        page(record(anew=1, changes=[["t", 1, "b"]])),
    ]

    async def scenario():
        async with answering(*answers, lasting=100) as (address, requests):
            reader = StatusReader(address)
            read = [await reader.read(timeout_s=LIMIT_S) for _ in answers]
            assert read == [True, False, True]
            assert requests == ["/status", "/status?since=7.4.2", "/status"]
            assert reader.picture.entries("t") == {(1,): ("b", None)}
            reader.close()

    asyncio.run(scenario())


def test_a_late_answer_is_not_taken_for_the_next_one():
    async def scenario():
        async with answering(None, page(record(connections=2)), lasting=100) as (address, _):
            reader = StatusReader(address)
            assert not await reader.read(timeout_s=0.05)
            assert await reader.read(timeout_s=LIMIT_S)
            assert reader.picture.connections == 2
            reader.close()

    asyncio.run(scenario())
