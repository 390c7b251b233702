"""Kafka's schemas: all of them are read, and one that is not understood is refused."""

import json
import zipfile

import pytest

from tests.protocol.schemas import (
    NO_VERSIONS,
    Array,
    Primitive,
    SchemaError,
    Struct,
    Versions,
    error_names,
    load_schemas,
    parse_message,
    read_schemas,
)

FIELD = {"name": "Name", "type": "string", "versions": "0+"}


def message(*fields, **attributes):
    base = {"type": "request", "name": "SomeRequest", "apiKey": 7, "validVersions": "0-3"}
    return {**base, "flexibleVersions": "2+", "fields": list(fields), **attributes}


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("3", [3], [2, 4]),
        ("3-5", [3, 5], [2, 6]),
        ("3+", [3, 99], [2]),
        ("none", [], [0, 1]),
    ],
)
def test_versions(text, inside, outside):
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


@pytest.mark.parametrize("text", ["", "+", "3-", "3 - 5", "-1", "all"])
def test_versions_that_are_none_are_refused(text):
    with pytest.raises(SchemaError):
        Versions.parse(text)


def test_fields_have_types_defaults_and_versions():
    nested = {"name": "Inner", "type": "[]Pair", "versions": "1+", "fields": [FIELD]}
    given = [
        {**FIELD, "nullableVersions": "1+", "default": "null", "ignorable": True},
        {"name": "Limit", "type": "int32", "versions": "0+", "default": "0x7fffffff"},
        {"name": "Flag", "type": "bool", "versions": "0+", "default": "true"},
        nested,
        {"name": "Shared", "type": "Common", "versions": "0+"},
        {"name": "Late", "type": "uuid", "versions": "2+", "taggedVersions": "2+", "tag": 0},
    ]
    parsed = parse_message(
        message(*given, commonStructs=[{"name": "Common", "versions": "0+", "fields": [FIELD]}])
    )
    name, limit, flag, inner, shared, late = parsed.body.fields
    assert (name.default, name.ignorable, name.nullable) == (None, True, Versions.parse("1+"))
    assert (limit.type, limit.default) == (Primitive("int32"), 0x7FFFFFFF)
    assert flag.default is True
    assert isinstance(inner.type, Array)
    assert isinstance(inner.type.element, Struct)
    assert [field.name for field in inner.type.element.fields] == ["Name"]
    assert isinstance(shared.type, Struct)
    assert [field.name for field in shared.type.fields] == ["Name"]
    assert [field.name for field in parsed.body.at(0)] == ["Name", "Limit", "Flag", "Shared"]
    assert parsed.body.tagged_at(1) == {}
    assert parsed.body.tagged_at(2) == {0: late}
    assert 1 not in parsed.flexible


@pytest.mark.parametrize(
    "definition",
    [
        message(FIELD, compressed=True),
        message({**FIELD, "secret": True}),
        message({**FIELD, "type": "int128"}),
        message({**FIELD, "type": "NoSuchStruct"}),
        message({**FIELD, "tag": 0}),
        message({**FIELD, "taggedVersions": "2+"}),
        message({**FIELD, "taggedVersions": "2+", "tag": 1}),
    ],
)
def test_what_is_not_understood_is_refused(definition):
    with pytest.raises(SchemaError):
        parse_message(definition)


def test_a_jar_is_read_with_its_comments(tmp_path):
    header = {"type": "header", "validVersions": "0-1", "flexibleVersions": "1+", "fields": []}
    files = {
        "SomeRequest": message(FIELD),
        "SomeResponse": message(FIELD, name="SomeResponse", type="response"),
        "GoneRequest": message(name="GoneRequest", validVersions="none", apiKey=8),
        "RequestHeader": {**header, "name": "RequestHeader"},
        "ResponseHeader": {**header, "name": "ResponseHeader"},
    }
    jar = tmp_path / "client.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, content in files.items():
            text = "// A licence.\n" + json.dumps(content, indent=1).replace("{", "{\n  // why", 1)
            archive.writestr(f"common/message/{name}.json", text)
    schemas = read_schemas(jar)
    assert list(schemas.apis) == [7]
    assert schemas.named("Some").request.body.fields[0].name == "Name"
    with pytest.raises(KeyError):
        schemas.named("Gone")


def test_a_response_with_other_versions_is_refused(tmp_path):
    jar = tmp_path / "client.jar"
    response = message(name="SomeResponse", type="response", validVersions="0-4")
    with zipfile.ZipFile(jar, "w") as archive:
        for content in (message(FIELD), response):
            name = f"common/message/{content['name']}.json"
            archive.writestr(name, json.dumps(content))
    with pytest.raises(SchemaError):
        read_schemas(jar)


def test_kafkas_own_schemas_are_read():
    schemas = load_schemas()
    assert {"Produce", "Fetch", "ShareFetch", "StreamsGroupHeartbeat"} <= {
        api.name for api in schemas.apis.values()
    }
    fetch = schemas.named("Fetch")
    assert fetch.key == 1
    assert 12 in fetch.response.flexible
    assert 11 not in fetch.response.flexible
    assert schemas.named("SaslHandshake").request.flexible == NO_VERSIONS
    tags = schemas.named("ApiVersions").response.body.tagged_at(3)
    assert [field.name for field in tags.values()][:2] == [
        "SupportedFeatures",
        "FinalizedFeaturesEpoch",
    ]
    client_id = schemas.request_header.body.fields[-1]
    assert client_id.flexible == NO_VERSIONS


def test_kafkas_own_errors_are_read():
    names = error_names()
    assert names[3] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert names[87] == "INVALID_RECORD"
    assert 9999 not in names
