"""Records: Produce, Fetch and what is asked about offsets."""

from __future__ import annotations

from typing import Any

from tests.protocol.dialogue import ApiScenarios, Dialogue, Scenarios
from tests.protocol.records import CODECS, Record, damaged, read_stored, write_batch
from tests.protocol.world import (
    ABSENT,
    COMMITTED,
    RECORDS,
    REQUEST_TIMEOUT_MS,
    START_MS,
    TOPIC,
    World,
    records_of,
)

ABSENT_PARTITION = 99
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, UNKNOWN_TIME = -1, -2, -3, -4, -99
ZSTD_FROM = 7
READ_COMMITTED = 1
PARTITION_BYTES_MAX = 1 << 20
FUTURE_EPOCH = 1000


def produce_body(
    world: World, topics: dict[str, list[tuple[int, bytes]]], acks: int = -1
) -> dict[str, Any]:
    """A request that appends batches, by topic and partition."""
    data = []
    for name, batches in topics.items():
        entries = [{"Index": index, "Records": batch} for index, batch in batches]
        data.append({"Name": name, "TopicId": world.topic_id(name), "PartitionData": entries})
    return {"Acks": acks, "TimeoutMs": REQUEST_TIMEOUT_MS, "TopicData": data}


def produce_succeeds(dialogue: Dialogue) -> None:
    """Batches under every codec; a second one; one without an answer; the broker's own time."""
    codecs = [name for name in CODECS if name != "zstd" or dialogue.version >= ZSTD_FROM]
    topic = dialogue.world.create_topic(len(codecs))
    for base in (0, RECORDS):
        batches = [
            (index, write_batch(records_of(codec), codec)) for index, codec in enumerate(codecs)
        ]
        answer = dialogue.ask(produce_body(dialogue.world, {topic: batches}))
        for result in answer["Responses"][0]["PartitionResponses"]:
            assert result["BaseOffset"] == base
            assert result["LogAppendTimeMs"] == -1
            assert result.get("LogStartOffset", 0) == 0
            assert result.get("RecordErrors", []) == []
            assert result.get("ErrorMessage") is None
    for index, codec in enumerate(codecs):
        stored = dialogue.world.stored(topic, index, 0)
        assert [batch.codec for batch in stored] == [codec, codec]
        records = [pair for batch in stored for pair in batch.records]
        assert records == list(enumerate(2 * records_of(codec)))
    produce_without_answer(dialogue, topic)
    produce_with_time_of_append(dialogue)


def produce_without_answer(dialogue: Dialogue, topic: str) -> None:
    """With `acks=0` nothing is answered: what comes next answers the request behind it."""
    world = dialogue.world
    connection = world.connection(world.place.root)
    end = 2 * RECORDS
    body = produce_body(dialogue.world, {topic: [(0, write_batch(records_of("quiet")))]}, acks=0)
    connection.send(dialogue.api, dialogue.version, body)
    answer = dialogue.ask(
        produce_body(dialogue.world, {topic: [(0, write_batch(records_of("answered")))]}, acks=1)
    )
    assert answer["Responses"][0]["PartitionResponses"][0]["BaseOffset"] == end + RECORDS


def produce_with_time_of_append(dialogue: Dialogue) -> None:
    """A topic whose records have the time at which they were appended."""
    topic = dialogue.world.create_topic(message_timestamp_type="LogAppendTime")
    answer = dialogue.ask(
        produce_body(dialogue.world, {topic: [(0, write_batch(records_of("now")))]})
    )
    (result,) = answer["Responses"][0]["PartitionResponses"]
    assert result["LogAppendTimeMs"] > START_MS + RECORDS


def produce_fails(dialogue: Dialogue) -> None:
    """Topics and partitions that are absent, damage, a key that is missing, wrong arguments."""
    world = dialogue.world
    batch = write_batch(records_of("refused"))
    answer = dialogue.ask(produce_body(dialogue.world, {ABSENT: [(0, batch)]}))
    unknown = "UNKNOWN_TOPIC_ID" if dialogue.version >= 13 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert dialogue.errors(answer) == {unknown}
    topic = world.create_topic()
    answer = dialogue.ask(produce_body(dialogue.world, {topic: [(ABSENT_PARTITION, batch)]}))
    assert dialogue.errors(answer) == {"UNKNOWN_TOPIC_OR_PARTITION"}
    answer = dialogue.ask(produce_body(dialogue.world, {topic: [(0, damaged(batch))]}))
    assert dialogue.errors(answer) == {"CORRUPT_MESSAGE"}
    answer = dialogue.ask(produce_body(dialogue.world, {topic: [(0, batch)]}, acks=2))
    assert dialogue.errors(answer) == {"INVALID_REQUIRED_ACKS"}
    if dialogue.version < ZSTD_FROM:
        compressed = write_batch(records_of("zstd"), "zstd")
        answer = dialogue.ask(produce_body(dialogue.world, {topic: [(0, compressed)]}))
        assert dialogue.errors(answer) == {"UNSUPPORTED_COMPRESSION_TYPE"}
    compacted = world.create_topic(cleanup_policy="compact")
    records = [Record(b"key", b"", START_MS), Record(None, b"", START_MS)]
    answer = dialogue.ask(produce_body(dialogue.world, {compacted: [(0, write_batch(records))]}))
    assert dialogue.errors(answer) == {"INVALID_RECORD"}
    (result,) = answer["Responses"][0]["PartitionResponses"]
    assert result["BaseOffset"] == -1
    if dialogue.version >= 8:
        assert [error["BatchIndex"] for error in result["RecordErrors"]] == [1]
        assert result["ErrorMessage"]


def fetch_body(
    world: World, topic: str, entries: list[dict[str, int]], **fields: int
) -> dict[str, Any]:
    """A request that reads partitions of one topic without waiting."""
    partitions = [{"PartitionMaxBytes": PARTITION_BYTES_MAX, **entry} for entry in entries]
    topics = [{"Topic": topic, "TopicId": world.topic_id(topic), "Partitions": partitions}]
    return {"MaxWaitMs": 0, "MinBytes": 1, "Topics": topics, **fields}


def fetch_succeeds(dialogue: Dialogue) -> None:
    """Every codec's batch as it was produced, also from inside a batch; an empty partition."""
    empty = {"Partition": len(CODECS), "FetchOffset": 0}
    for offset in (0, 1):
        entries = [{"Partition": index, "FetchOffset": offset} for index in range(len(CODECS))]
        body = fetch_body(dialogue.world, TOPIC, [*entries, empty], IsolationLevel=READ_COMMITTED)
        answer = dialogue.ask(body)
        partitions = answer["Responses"][0]["Partitions"]
        assert answer.get("SessionId", 0) == 0
        by_index = {result["PartitionIndex"]: result for result in partitions}
        for index, codec in enumerate(CODECS):
            result = by_index[index]
            assert (result["HighWatermark"], result["LastStableOffset"]) == (RECORDS, RECORDS)
            (batch,) = read_stored(result["Records"], f"{TOPIC}-{index}")
            assert (batch.base_offset, batch.codec) == (0, codec)
            assert list(batch.records) == list(enumerate(records_of(codec)))
        assert by_index[len(CODECS)]["Records"] == b""
        assert by_index[len(CODECS)]["HighWatermark"] == 0
        for result in partitions:
            assert result["AbortedTransactions"] == []
            assert result.get("LogStartOffset", 0) == 0
            assert result.get("PreferredReadReplica", -1) == -1


def fetch_fails(dialogue: Dialogue) -> None:
    """What is absent, offsets out of range, epochs and sessions that nobody knows."""
    first = {"Partition": 0, "FetchOffset": 0}
    answer = dialogue.ask(fetch_body(dialogue.world, ABSENT, [first]))
    unknown = "UNKNOWN_TOPIC_ID" if dialogue.version >= 13 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert dialogue.errors(answer) == {unknown}
    refusals = [
        ({"Partition": ABSENT_PARTITION}, "UNKNOWN_TOPIC_OR_PARTITION", 4),
        ({"FetchOffset": 10 * RECORDS}, "OFFSET_OUT_OF_RANGE", 4),
        ({"CurrentLeaderEpoch": FUTURE_EPOCH}, "UNKNOWN_LEADER_EPOCH", 9),
    ]
    for change, error, since in refusals:
        if dialogue.version >= since:
            answer = dialogue.ask(fetch_body(dialogue.world, TOPIC, [{**first, **change}]))
            assert dialogue.errors(answer) == {error}, change
            (result,) = answer["Responses"][0]["Partitions"]
            assert result["Records"] == b""
    if dialogue.version >= 7:
        body = fetch_body(dialogue.world, TOPIC, [first], SessionId=7, SessionEpoch=1)
        assert dialogue.errors(dialogue.ask(body)) == {"FETCH_SESSION_ID_NOT_FOUND"}
    if dialogue.version >= 12:
        beyond = {"Partition": 0, "FetchOffset": 10 * RECORDS, "LastFetchedEpoch": 0}
        answer = dialogue.ask(fetch_body(dialogue.world, TOPIC, [beyond]))
        (result,) = answer["Responses"][0]["Partitions"]
        assert result["DivergingEpoch"] == {"Epoch": 0, "EndOffset": RECORDS}
        assert result["ErrorCode"] == 0


def list_offsets_body(topic: str, asked: list[tuple[int, int]], epoch: int = -1) -> dict[str, Any]:
    """A request about partitions of a topic, as pairs of index and timestamp."""
    entries = [
        {"PartitionIndex": index, "Timestamp": timestamp, "CurrentLeaderEpoch": epoch}
        for index, timestamp in asked
    ]
    return {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": entries}]}


def list_offsets_succeeds(dialogue: Dialogue) -> None:
    """The ends of logs, and offsets by time; the record that is meant is the second of three."""
    newest = (1, START_MS + RECORDS)
    expected = {
        EARLIEST: (0, -1),
        LATEST: (RECORDS, -1),
        START_MS: (0, START_MS),
        START_MS + 1: newest,
        START_MS + RECORDS + 1: (-1, -1),
    }
    if dialogue.version >= 7:
        expected[MAX_TIMESTAMP] = newest
    if dialogue.version >= 8:
        expected[EARLIEST_LOCAL] = (0, -1)
    for timestamp, outcome in expected.items():
        asked = [(index, timestamp) for index in range(len(CODECS))]
        answer = dialogue.ask(list_offsets_body(TOPIC, asked))
        for result in answer["Topics"][0]["Partitions"]:
            assert (result["Offset"], result["Timestamp"]) == outcome
            assert result.get("LeaderEpoch", -1) == (-1 if outcome[0] < 0 else _epoch(dialogue))


def _epoch(dialogue: Dialogue) -> int:
    return 0 if dialogue.version >= 4 else -1


def list_offsets_fails(dialogue: Dialogue) -> None:
    """What is absent, a time of no meaning, an epoch that nobody knows."""
    refusals = [
        (list_offsets_body(ABSENT, [(0, LATEST)]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (list_offsets_body(TOPIC, [(ABSENT_PARTITION, LATEST)]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (list_offsets_body(TOPIC, [(0, UNKNOWN_TIME)]), "UNSUPPORTED_VERSION"),
    ]
    if dialogue.version >= 4:
        body = list_offsets_body(TOPIC, [(0, LATEST)], FUTURE_EPOCH)
        refusals.append((body, "UNKNOWN_LEADER_EPOCH"))
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        for result in answer["Topics"][0]["Partitions"]:
            assert (result["Offset"], result["Timestamp"]) == (-1, -1)


def delete_records_body(topic: str, asked: list[tuple[int, int]]) -> dict[str, Any]:
    """A request that deletes records before offsets, as pairs of partition and offset."""
    entries = [{"PartitionIndex": index, "Offset": offset} for index, offset in asked]
    topics = [{"Name": topic, "Partitions": entries}]
    return {"Topics": topics, "TimeoutMs": REQUEST_TIMEOUT_MS}


def delete_records_succeeds(dialogue: Dialogue) -> None:
    """Up to an offset, and up to the end."""
    topic = dialogue.world.create_topic(2)
    for partition in (0, 1):
        dialogue.world.produce(topic, partition, write_batch(records_of("deleted")))
    answer = dialogue.ask(delete_records_body(topic, [(0, COMMITTED), (1, -1)]))
    results = answer["Topics"][0]["Partitions"]
    lows = {result["PartitionIndex"]: result["LowWatermark"] for result in results}
    assert lows == {0: COMMITTED, 1: RECORDS}


def delete_records_fails(dialogue: Dialogue) -> None:
    """What is absent, and offsets beyond the end."""
    refusals = [
        (delete_records_body(ABSENT, [(0, 1)]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (delete_records_body(TOPIC, [(ABSENT_PARTITION, 1)]), "UNKNOWN_TOPIC_OR_PARTITION"),
        (delete_records_body(TOPIC, [(0, 10 * RECORDS)]), "OFFSET_OUT_OF_RANGE"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        assert answer["Topics"][0]["Partitions"][0]["LowWatermark"] == -1


def epoch_body(topic: str, partition: int, current: int, asked: int) -> dict[str, Any]:
    """A request for the end of an epoch."""
    entry = {"Partition": partition, "CurrentLeaderEpoch": current, "LeaderEpoch": asked}
    return {"Topics": [{"Topic": topic, "Partitions": [entry]}]}


def epoch_succeeds(dialogue: Dialogue) -> None:
    """The end of the present epoch, and of one that is yet to come."""
    for asked, outcome in ((0, (0, RECORDS)), (FUTURE_EPOCH, (-1, -1))):
        answer = dialogue.ask(epoch_body(TOPIC, 0, -1, asked))
        (result,) = answer["Topics"][0]["Partitions"]
        assert (result["LeaderEpoch"], result["EndOffset"]) == outcome


def epoch_fails(dialogue: Dialogue) -> None:
    """What is absent, and a client that knows a later epoch."""
    refusals = [
        (epoch_body(ABSENT, 0, -1, 0), "UNKNOWN_TOPIC_OR_PARTITION"),
        (epoch_body(TOPIC, ABSENT_PARTITION, -1, 0), "UNKNOWN_TOPIC_OR_PARTITION"),
        (epoch_body(TOPIC, 0, FUTURE_EPOCH, 0), "UNKNOWN_LEADER_EPOCH"),
    ]
    for body, error in refusals:
        answer = dialogue.ask(body)
        assert dialogue.errors(answer) == {error}
        (result,) = answer["Topics"][0]["Partitions"]
        assert (result["LeaderEpoch"], result["EndOffset"]) == (-1, -1)


def producer_id_succeeds(dialogue: Dialogue) -> None:
    """Two producers get two ids, and write with them."""
    body = {"TransactionalId": None, "TransactionTimeoutMs": -1}
    answers = [dialogue.ask(body) for _ in range(2)]
    assert [answer["ProducerEpoch"] for answer in answers] == [0, 0]
    first, second = [answer["ProducerId"] for answer in answers]
    assert first >= 0
    assert second > first
    topic = dialogue.world.create_topic()
    batch = write_batch(records_of("idempotent"), producer=(second, 0, 0))
    assert dialogue.world.produce(topic, 0, batch) == 0
    assert dialogue.world.produce(topic, 0, batch) == 0, "a repeated batch is stored once"


def producer_id_fails(dialogue: Dialogue) -> None:
    """A transactional id that is none."""
    answer = dialogue.ask({"TransactionalId": "", "TransactionTimeoutMs": 1000})
    assert dialogue.errors(answer) == {"INVALID_REQUEST"}
    assert (answer["ProducerId"], answer["ProducerEpoch"]) == (-1, -1)


APIS: ApiScenarios = {
    "Produce": Scenarios(produce_succeeds, produce_fails),
    "Fetch": Scenarios(fetch_succeeds, fetch_fails),
    "ListOffsets": Scenarios(list_offsets_succeeds, list_offsets_fails),
    "DeleteRecords": Scenarios(delete_records_succeeds, delete_records_fails),
    "OffsetForLeaderEpoch": Scenarios(epoch_succeeds, epoch_fails),
    "InitProducerId": Scenarios(producer_id_succeeds, producer_id_fails),
}
