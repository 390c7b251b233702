"""Kafka's own message schemas, read from its client's jar: `common/message/*.json`.

What their attributes mean is written in the `README.md` of that folder in Kafka's sources. One that
is not known here is an error, so that none is passed over.
"""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

from tests.peer.jars import jar_folder
from tests.peer.kafka import java_tool

FOLDER = "common/message/"
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
NEWEST = 32767
ZERO_UUID = UUID(int=0)

MESSAGE_ATTRIBUTES = {
    *("apiKey", "type", "name", "validVersions", "flexibleVersions", "fields", "commonStructs"),
    *("listeners", "latestVersionUnstable"),
}
FIELD_ATTRIBUTES = {
    *("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default"),
    *("ignorable", "mapKey", "entityType", "fields", "flexibleVersions", "about", "zeroCopy"),
}
INTEGER_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
# What a field holds that says nothing.
NO_CONTENT: Mapping[str, object] = {"string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID}
OTHER_PRIMITIVES = {"bool", "float64", "uuid", "string", "bytes", "records"}


class SchemaError(Exception):
    """A schema says something that is not understood."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included."""

    oldest: int
    newest: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Reads `3`, `3-5`, `3+` or `none`. Raises `SchemaError`."""
        if text == "none":
            return NO_VERSIONS
        match = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)
        if match is None:
            message = f"versions {text!r}"
            raise SchemaError(message)
        oldest = int(match[1])
        if match[2]:
            return cls(oldest, NEWEST)
        return cls(oldest, int(match[3] or oldest))

    def __contains__(self, version: int) -> bool:
        return self.oldest <= version <= self.newest


NO_VERSIONS = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type that contains no other: `int32`, `string`, `records` and so on."""

    name: str


@dataclass(frozen=True, slots=True)
class Array:
    """An array of any number of elements."""

    element: Type


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields, one after another."""

    name: str
    fields: tuple[Field, ...]

    def at(self, version: int) -> tuple[Field, ...]:
        """The fields that stand in their place in this version, without the tagged ones."""
        return tuple(
            field
            for field in self.fields
            if version in field.versions and version not in field.tagged
        )

    def tagged_at(self, version: int) -> Mapping[int, Field]:
        """The tagged fields of this version, by tag in ascending order."""
        fields = [field for field in self.fields if version in field.tagged]
        by_tag = {field.tag: field for field in fields if field.tag is not None}
        return dict(sorted(by_tag.items()))


Type = Primitive | Array | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct. `default` is as the codec decodes it; that of a struct is `{}`."""

    name: str
    type: Type
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: Any
    ignorable: bool
    is_key: bool
    entity: str | None
    # The versions in which it has the flexible form, where these are not those of its message.
    flexible: Versions | None


@dataclass(frozen=True, slots=True)
class Message:
    """A request, a response, or a header."""

    name: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    body: Struct


@dataclass(frozen=True, slots=True)
class Api:
    """A request with its response."""

    key: int
    name: str
    request: Message
    response: Message


@dataclass(frozen=True, slots=True)
class Schemas:
    """All APIs by key, and the headers."""

    apis: Mapping[int, Api]
    request_header: Message
    response_header: Message

    def named(self, name: str) -> Api:
        """An API by its name, such as `Fetch`. Raises `KeyError`."""
        return {api.name: api for api in self.apis.values()}[name]


@cache
def load_schemas() -> Schemas:
    """The schemas of the Kafka that the peer runs. Raises `FileNotFoundError` before set-up."""
    return read_schemas(client_jar())


def client_jar() -> Path:
    """The jar with Kafka's client and its schemas. Raises `FileNotFoundError` before set-up."""
    jars = list(jar_folder().glob("kafka-clients-*.jar"))
    if len(jars) != 1:
        message = f"{jar_folder()} has {len(jars)} jars of Kafka's client: run `make setup`"
        raise FileNotFoundError(message)
    return jars[0]


@cache
def error_names() -> Mapping[int, str]:
    """Kafka's error codes with their names, as Kafka prints them itself."""
    table = java_tool("org.apache.kafka.common.protocol.Errors", heap="64m").stdout
    rows = re.findall(r"<tr><td>(\w+)</td><td>(-?\d+)</td>", html.unescape(table))
    names = {int(code): name for name, code in rows}
    if names.get(0) != "NONE" or names.get(-1) != "UNKNOWN_SERVER_ERROR":
        message = f"no table of errors: {table[:200]}"
        raise SchemaError(message)
    return names


def read_schemas(jar: Path) -> Schemas:
    """Reads every schema of a jar. Raises `SchemaError` for one that is not understood."""
    messages: dict[str, Message] = {}
    kinds: dict[str, str] = {}
    with zipfile.ZipFile(jar) as archive:
        for path in archive.namelist():
            if path.startswith(FOLDER) and path.endswith(".json"):
                definition = json.loads(COMMENT.sub("", archive.read(path).decode()))
                kinds[definition["name"]] = definition["type"]
                # Those that were removed are kept for their numbers alone.
                if definition["validVersions"] != "none":
                    messages[definition["name"]] = parse_message(definition)
    apis = {}
    for name, request in messages.items():
        if kinds[name] == "request":
            key = request.api_key
            api_name = name.removesuffix("Request")
            response = messages[f"{api_name}Response"]
            if key is None or response.api_key != key or response.versions != request.versions:
                message = f"{name} and its response do not go together"
                raise SchemaError(message)
            apis[key] = Api(key, api_name, request, response)
    return Schemas(apis, messages["RequestHeader"], messages["ResponseHeader"])


def parse_message(definition: Mapping[str, Any]) -> Message:
    """Reads one schema. Raises `SchemaError`."""
    name = definition["name"]
    check_attributes(name, definition, MESSAGE_ATTRIBUTES)
    parser = _Parser(name, definition.get("commonStructs", []))
    return Message(
        name,
        definition.get("apiKey"),
        Versions.parse(definition["validVersions"]),
        Versions.parse(definition["flexibleVersions"]),
        parser.struct(name, definition["fields"]),
    )


def check_attributes(place: str, definition: Mapping[str, Any], known: set[str]) -> None:
    """Raises `SchemaError` for an attribute that is not known."""
    if unknown := definition.keys() - known:
        message = f"{place}: unknown attributes {sorted(unknown)}"
        raise SchemaError(message)


class _Parser:
    """Reads the fields of one message, whose common structs they may name."""

    def __init__(self, message: str, common: list[Mapping[str, Any]]) -> None:
        self.message = message
        self.common = {struct["name"]: struct["fields"] for struct in common}

    def struct(self, name: str, definitions: list[Mapping[str, Any]]) -> Struct:
        fields = tuple(self.field(definition) for definition in definitions)
        tags = sorted(field.tag for field in fields if field.tag is not None)
        if tags != list(range(len(tags))):
            self.refuse(name, f"tags {tags}")
        return Struct(name, fields)

    def field(self, definition: Mapping[str, Any]) -> Field:
        name = definition["name"]
        check_attributes(f"{self.message}.{name}", definition, FIELD_ATTRIBUTES)
        field_type = self.type(name, definition["type"], definition.get("fields"))
        tag = definition.get("tag")
        tagged = Versions.parse(definition.get("taggedVersions", "none"))
        if (tag is None) != (tagged == NO_VERSIONS):
            self.refuse(name, "a tag without versions, or versions without a tag")
        flexible = definition.get("flexibleVersions")
        return Field(
            name,
            field_type,
            Versions.parse(definition["versions"]),
            Versions.parse(definition.get("nullableVersions", "none")),
            tagged,
            tag,
            self.default(field_type, definition.get("default")),
            definition.get("ignorable", False),
            definition.get("mapKey", False),
            definition.get("entityType"),
            None if flexible is None else Versions.parse(flexible),
        )

    def type(self, field: str, text: str, fields: list[Mapping[str, Any]] | None) -> Type:
        if text.startswith("[]"):
            return Array(self.type(field, text[2:], fields))
        if text in INTEGER_BITS or text in OTHER_PRIMITIVES:
            return Primitive(text)
        definitions = fields if fields is not None else self.common.get(text)
        if definitions is None:
            self.refuse(field, f"unknown type {text}")
        return self.struct(text, definitions)

    def default(self, field_type: Type, given: object) -> Any:  # noqa: ANN401
        """The default of a field, from how the schema writes it."""
        if given == "null":
            return None
        match field_type:
            case Array() | Struct():
                return [] if isinstance(field_type, Array) else {}
            case Primitive(name) if name in NO_CONTENT:
                return NO_CONTENT[name] if given is None else given
            case Primitive("bool"):
                return {"false": False, "true": True}[str(given or "false").lower()]
            case Primitive("float64"):
                return float(str(given or 0))
            case _:
                return int(str(given or 0), 0)

    def refuse(self, place: str, reason: str) -> NoReturn:
        message = f"{self.message}.{place}: {reason}"
        raise SchemaError(message)
