"""The codec reads what it writes, and refuses an answer that is damaged in any way."""

import dataclasses
import struct
from uuid import UUID

import pytest

from tests.protocol.codec import (
    MalformedError,
    UnsupportedFieldError,
    defaults_of,
    read_message,
    write_message,
    write_uvarint,
)
from tests.protocol.schemas import NEWEST, Array, Field, Primitive, Struct, Versions, load_schemas

ALL_VERSIONS = Versions(0, NEWEST)
APIS = sorted(api.name for api in load_schemas().apis.values())
VALUES = {"bool": True, "float64": 0.5, "bytes": b"\0b", "records": b"\0r"}


def filled(kind, version, number=1):
    """A value in which no field has its default; two elements of an array differ."""
    match kind:
        case Struct():
            fields = [*kind.at(version), *kind.tagged_at(version).values()]
            return {
                field.name: number
                if field.name.endswith("ErrorCode")
                else filled(field.type, version, number)
                for field in fields
            }
        case Array(element):
            return [filled(element, version, number + index) for index in range(2)]
        case Primitive("string"):
            return f"é{number}"
        case Primitive("uuid"):
            return UUID(int=number)
        case Primitive(name):
            return VALUES.get(name, 10 + number)


def hollow(kind, version):
    """A struct in which all is null that may be, and everything else has its default."""
    fields = [*kind.at(version), *kind.tagged_at(version).values()]
    values = defaults_of(kind, version)
    return {**values, **{field.name: None for field in fields if version in field.nullable}}


def messages(api):
    """Its request and its response in each version."""
    return [
        (message, version)
        for message in (api.request, api.response)
        for version in range(message.versions.oldest, message.versions.newest + 1)
    ]


@pytest.mark.parametrize("name", APIS)
def test_what_is_written_is_read(codec, name):
    for message, version in messages(codec.schemas.named(name)):
        for body in (filled(message.body, version), hollow(message.body, version)):
            data = write_message(message, version, body)
            assert read_message(message, version, data, codec.errors) == body


@pytest.mark.parametrize("name", APIS)
def test_a_byte_more_or_less_is_refused(codec, name):
    for message, version in messages(codec.schemas.named(name)):
        data = write_message(message, version, filled(message.body, version))
        # Some requests of old versions have no byte that could be taken.
        for wrong in (data + b"\0", data + b"\1", *([data[:-1]] if data else [])):
            with pytest.raises(MalformedError):
                read_message(message, version, wrong, codec.errors)


@pytest.mark.parametrize(("name", "version"), [("Fetch", 18), ("Metadata", 13), ("JoinGroup", 3)])
def test_an_answer_that_is_cut_off_is_refused(codec, name, version):
    message = codec.schemas.named(name).response
    data = write_message(message, version, filled(message.body, version))
    for length in range(len(data)):
        with pytest.raises(MalformedError):
            read_message(message, version, data[:length], codec.errors)


def with_field(kind, path, change):
    """The struct with a field at this path as `change` makes it."""
    name, *rest = path
    fields = []
    for field in kind.fields:
        new = field
        if field.name == name and rest:
            array = isinstance(field.type, Array)
            inner = with_field(field.type.element if array else field.type, rest, change)
            new = dataclasses.replace(field, type=Array(inner) if array else inner)
        elif field.name == name:
            new = change(field)
        fields.append(new)
    return dataclasses.replace(kind, fields=tuple(fields))


def with_value(body, path, value):
    """The body with this value in the first elements along the path."""
    name, *rest = path
    inner = body[name]
    if rest and isinstance(inner, list):
        value = [with_value(inner[0], rest, value), *inner[1:]]
    elif rest:
        value = with_value(inner, rest, value)
    return {**body, name: value}


def refused(codec, name, version, path, change, value):
    """Why an answer is refused that was written by a schema in which one field is changed."""
    message = codec.schemas.named(name).response
    wrong = dataclasses.replace(message, body=with_field(message.body, path, change))
    body = with_value(filled(wrong.body, version), path, value)
    data = write_message(wrong, version, body)
    with pytest.raises(MalformedError) as error:
        read_message(message, version, data, codec.errors)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "version", "path"),
    [
        ("JoinGroup", 6, ["ProtocolName"]),
        ("Metadata", 11, ["Topics", "Name"]),
        ("DescribeCluster", 0, ["ClusterId"]),
        ("SyncGroup", 3, ["Assignment"]),
        ("SyncGroup", 5, ["Assignment"]),
        ("OffsetFetch", 1, ["Topics"]),
        ("DescribeConfigs", 4, ["Results", "Configs", "Synonyms"]),
        ("DescribeLogDirs", 1, ["Results", "LogDir"]),
        ("CreateTopics", 4, ["Topics", "Name"]),
    ],
)
def test_null_is_refused_where_the_version_has_none(codec, name, version, path):
    def allow(field):
        return dataclasses.replace(field, nullable=ALL_VERSIONS)

    assert "null, which this version does not allow" in refused(
        codec, name, version, path, allow, None
    )


@pytest.mark.parametrize(
    ("name", "version", "path"),
    [
        ("OffsetFetch", 4, ["Topics", "Partitions", "CommittedLeaderEpoch"]),
        ("Metadata", 7, ["ClusterAuthorizedOperations"]),
        ("Metadata", 9, ["Topics", "TopicId"]),
        ("ListGroups", 3, ["Groups", "GroupState"]),
        ("Produce", 7, ["Responses", "PartitionResponses", "ErrorMessage"]),
        ("DescribeLogDirs", 3, ["Results", "UsableBytes"]),
    ],
)
def test_the_default_of_a_field_that_the_version_lacks_is_refused(codec, name, version, path):
    def widen(field):
        return dataclasses.replace(field, versions=ALL_VERSIONS, nullable=ALL_VERSIONS)

    message = codec.schemas.named(name).response
    kind = message.body
    for part in path[:-1]:
        field = next(field for field in kind.fields if field.name == part)
        kind = field.type.element
    default = next(field.default for field in kind.fields if field.name == path[-1])
    assert refused(codec, name, version, path, widen, default)


def test_a_tagged_field_with_its_default_is_refused(codec):
    def other_default(field):
        return dataclasses.replace(field, default=1)

    path = ["Topics", "TopicConfigErrorCode"]
    reason = refused(codec, "CreateTopics", 7, path, other_default, 0)
    assert "tagged field with its default" in reason


def test_an_unknown_tag_is_refused(codec):
    message = codec.schemas.named("CreateTopics").response
    known = message.body.fields[-1]
    late = dataclasses.replace(known, name="Late", type=Primitive("int8"), default=0)
    late = dataclasses.replace(late, versions=ALL_VERSIONS, tagged=Versions(5, NEWEST), tag=0)
    assert isinstance(late, Field)
    body = dataclasses.replace(message.body, fields=(*message.body.fields, late))
    wrong = dataclasses.replace(message, body=body)
    for version in (5, 7):
        data = write_message(wrong, version, filled(wrong.body, version))
        with pytest.raises(MalformedError, match="unknown tag 0"):
            read_message(message, version, data, codec.errors)


def api_versions(tags):
    """The body of an ApiVersions answer, version 3, with these pairs of tag and content."""
    tagged = b"".join(
        write_uvarint(tag) + write_uvarint(len(content)) + content for tag, content in tags
    )
    return b"\0\0" + b"\1" + bytes(4) + write_uvarint(len(tags)) + tagged


EPOCH, READY, FEATURES = (1, struct.pack(">q", 5)), (3, b"\1"), (0, b"\2\2a\0\1\0\2\0")


def test_an_answer_written_by_hand_is_read(codec):
    message = codec.schemas.named("ApiVersions").response
    answer = read_message(message, 3, api_versions([FEATURES, EPOCH, READY]), codec.errors)
    assert answer == {
        "ErrorCode": 0,
        "ApiKeys": [],
        "ThrottleTimeMs": 0,
        "SupportedFeatures": [{"Name": "a", "MinVersion": 1, "MaxVersion": 2}],
        "FinalizedFeaturesEpoch": 5,
        "FinalizedFeatures": [],
        "ZkMigrationReady": True,
    }


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (api_versions([EPOCH, EPOCH]), "tag 1 comes after tag 1"),
        (api_versions([READY, EPOCH]), "tag 1 comes after tag 3"),
        (api_versions([(4, b"\0")]), "unknown tag 4"),
        (api_versions([(1, bytes(8) + b"\0")]), "left over"),
        (api_versions([(1, bytes(4))]), "bytes, and 4 are left"),
        (api_versions([(3, b"\2")]), "2 is no boolean"),
        (api_versions([(3, b"\0")]), "with its default"),
        (api_versions([(0, b"\2\2\xff\0\1\0\2\0")]), "not UTF-8"),
        (api_versions([(0, b"\2\0\0\1\0\2\0")]), "null"),
        (api_versions([(0, b"\3" + 2 * b"\2a\0\1\0\2\0")]), "the same Name"),
        (api_versions([EPOCH])[:-10] + b"\2", "bytes, and 0 are left"),
        (b"\x27\x0f" + api_versions([])[2:], "there is no error 9999"),
        (b"\0\0\1" + b"\xff\xff\xff\xff" + b"\0", "a pause of -1 ms"),
        (b"\0\0\x81\0" + bytes(4) + b"\0", "more bytes than it needs"),
        (b"\0\0\xff\xff\xff\xff\x0f" + bytes(5), "no length"),
        (b"\0\0\xff\xff\xff\xff\xff\1" + bytes(5), "a number has no end"),
        (b"\0\0\xff\xff\xff\xff\7" + bytes(5), "elements are more than the bytes"),
        (b"\0\0\0" + bytes(4) + b"\0", "null"),
    ],
)
def test_damage_is_refused_with_its_place(codec, data, reason):
    message = codec.schemas.named("ApiVersions").response
    with pytest.raises(MalformedError, match=reason) as error:
        read_message(message, 3, data, codec.errors)
    assert str(error.value).startswith("ApiVersionsResponse v3")


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xfe", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_a_count_that_cannot_be_is_refused_in_old_versions_too(codec, count):
    message = codec.schemas.named("ApiVersions").response
    with pytest.raises(MalformedError):
        read_message(message, 0, b"\0\0" + count, codec.errors)


def test_a_struct_that_is_neither_there_nor_null_is_refused(codec):
    message = codec.schemas.named("DescribeTopicPartitions").response
    data = bytes(4) + b"\1" + b"\xff" + b"\0"
    assert read_message(message, 0, data, codec.errors)["NextCursor"] is None
    for presence in (b"\0", b"\2", b"\xfe"):
        with pytest.raises(MalformedError, match="neither that it is there nor"):
            read_message(message, 0, bytes(4) + b"\1" + presence + b"\0", codec.errors)


@pytest.mark.parametrize(
    ("name", "version", "flexible"),
    [("Heartbeat", 3, False), ("Heartbeat", 4, True), ("ApiVersions", 3, False)],
)
def test_the_header_is_that_of_the_version(codec, name, version, flexible):
    api = codec.schemas.named(name)
    body = write_message(api.response, version, filled(api.response.body, version))
    header = struct.pack(">i", 5)
    right, wrong = (header + b"\0", header) if flexible else (header, header + b"\0")
    assert codec.answer(api, version, right + body, 5) == filled(api.response.body, version)
    with pytest.raises(MalformedError):
        codec.answer(api, version, wrong + body, 5)
    with pytest.raises(MalformedError, match="correlation id 5, expected 6"):
        codec.answer(api, version, right + body, 6)


def test_requests_have_the_header_of_their_version(codec):
    api = codec.schemas.named("ListGroups")
    old = codec.request(api, 2, {}, correlation_id=1, client_id="é")
    assert old == struct.pack(">hhih", 16, 2, 1, 2) + "é".encode()
    new = codec.request(api, 4, {"StatesFilter": ["a"]}, correlation_id=1, client_id=None)
    # No client id, no tagged fields; one element, a string of one byte; no tagged fields.
    assert new == struct.pack(">hhih", 16, 4, 1, -1) + b"\0" + b"\2\2a" + b"\0"


@pytest.mark.parametrize(
    ("name", "version", "body"),
    [
        ("Metadata", 3, {"Topics": None, "AllowAutoTopicCreation": False}),
        ("Metadata", 0, {"Topics": None}),
        ("Metadata", 1, {"Subjects": []}),
        ("Metadata", 99, {}),
        ("DeleteTopics", 5, {"Topics": [{"Name": "orders"}]}),
    ],
)
def test_what_a_request_cannot_say_is_refused(codec, name, version, body):
    with pytest.raises(UnsupportedFieldError):
        write_message(codec.schemas.named(name).request, version, body)
