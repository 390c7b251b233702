"""Requests and answers as bytes, by Kafka's schemas. Reading is strict: see `Reader`.

A message is a dict by the schema's names of its fields (`{"Topics": [{"Name": "orders"}]}`). A
message that was read has the fields of its version and no others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn
from uuid import UUID

from tests.protocol.schemas import (
    INTEGER_BITS,
    Api,
    Array,
    Field,
    Message,
    Primitive,
    Schemas,
    Struct,
    Type,
)

Body = Mapping[str, Any]

API_VERSIONS = "ApiVersions"
UVARINT_BYTES_MAX = 5
LENGTH_MAX = (1 << 31) - 1
INTEGERS = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
}


class MalformedError(Exception):
    """Bytes that Kafka's protocol does not allow. The text begins with the path of the field."""


class UnsupportedFieldError(Exception):
    """A message cannot be written: a field is unknown, or the version cannot carry its value."""


def is_flexible(message: Message, field: Field, version: int) -> bool:
    """Whether a field has the flexible form: compact lengths."""
    return version in (message.flexible if field.flexible is None else field.flexible)


def defaults_of(body: Struct, version: int) -> dict[str, Any]:
    """The struct in which every field of this version has its default."""
    fields = [*body.at(version), *body.tagged_at(version).values()]
    return {field.name: default_of(field, version) for field in fields}


def default_of(field: Field, version: int) -> Any:  # noqa: ANN401
    """The default of a field in this version, as it is read."""
    if isinstance(field.type, Struct) and field.default is not None:
        return defaults_of(field.type, version)
    return field.default


class Codec:
    """Writes requests and reads answers. `errors` are the error codes that exist."""

    def __init__(self, schemas: Schemas, errors: Mapping[int, str]) -> None:
        self.schemas = schemas
        self.errors = errors

    def request(
        self, api: Api, version: int, body: Body, *, correlation_id: int, client_id: str | None
    ) -> bytes:
        """A request with its header, without the frame's length. Raises `UnsupportedFieldError`."""
        header_version = 2 if version in api.request.flexible else 1
        header = {
            "RequestApiKey": api.key,
            "RequestApiVersion": version,
            "CorrelationId": correlation_id,
            "ClientId": client_id,
        }
        return write_message(self.schemas.request_header, header_version, header) + write_message(
            api.request, version, body
        )

    def answer(self, api: Api, version: int, frame: bytes, correlation_id: int) -> dict[str, Any]:
        """The body of an answer, read strictly. Raises `MalformedError`.

        The header of ApiVersions' answer never has tagged fields: who asks does not know yet which
        versions the broker speaks.
        """
        flexible = version in api.response.flexible and api.name != API_VERSIONS
        reader = Reader(self.schemas.response_header, int(flexible), frame, self.errors)
        header = reader.struct(self.schemas.response_header.body)
        if header["CorrelationId"] != correlation_id:
            message = f"correlation id {header['CorrelationId']}, expected {correlation_id}"
            raise MalformedError(message)
        return read_message(api.response, version, frame[reader.position :], self.errors)


def write_message(message: Message, version: int, body: Body) -> bytes:
    """A message as bytes. Raises `UnsupportedFieldError`."""
    writer = Writer(message, version)
    writer.struct(message.body, body)
    return bytes(writer.out)


def read_message(
    message: Message, version: int, data: bytes, errors: Mapping[int, str]
) -> dict[str, Any]:
    """Reads a message that is all of `data`. Raises `MalformedError`."""
    reader = Reader(message, version, data, errors)
    body = reader.struct(message.body)
    if reader.position != len(data):
        reader.refuse(f"{len(data) - reader.position} bytes are left over")
    return body


def write_uvarint(value: int) -> bytes:
    """An unsigned number of variable length."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Writer:
    """Writes one message as Kafka does: tagged fields that have their defaults are left out."""

    def __init__(self, message: Message, version: int) -> None:
        if version not in message.versions:
            reason = f"{message.name} has no version {version}"
            raise UnsupportedFieldError(reason)
        self.message = message
        self.version = version
        self.out = bytearray()

    def struct(self, kind: Struct, values: Body) -> None:
        """A struct from the fields that are given; the others have their defaults."""
        self._check_names(kind, values)
        for field in kind.at(self.version):
            value = values.get(field.name, default_of(field, self.version))
            self._field(field, value)
        if self.version in self.message.flexible:
            self._tagged(kind, values)

    def _check_names(self, kind: Struct, values: Body) -> None:
        known = {field.name: field for field in kind.fields}
        for name, value in values.items():
            field = known.get(name)
            if field is None:
                message = f"{self.message.name}: {kind.name} has no field {name}"
                raise UnsupportedFieldError(message)
            fits = self.version in field.versions or field.ignorable
            if not fits and value != default_of(field, self.version):
                message = f"{self.message.name} v{self.version} has no field {name}"
                raise UnsupportedFieldError(message)

    def _field(self, field: Field, value: Any) -> None:  # noqa: ANN401
        if value is None and self.version not in field.nullable:
            message = f"{self.message.name} v{self.version}: {field.name} is not nullable"
            raise UnsupportedFieldError(message)
        flexible = is_flexible(self.message, field, self.version)
        if isinstance(field.type, Struct):
            if self.version in field.nullable:
                self.out += struct.pack(">b", -1 if value is None else 1)
            if value is not None:
                self.struct(field.type, value)
        else:
            self.value(field.type, value, flexible=flexible)

    def value(self, kind: Type, value: Any, *, flexible: bool) -> None:  # noqa: ANN401
        """A value in its place; null where it is `None`."""
        match kind:
            case Struct():
                self.struct(kind, value)
            case Array(element):
                self._length(None if value is None else len(value), flexible=flexible)
                for item in value or ():
                    self.value(element, item, flexible=flexible)
            case Primitive("string"):
                text = None if value is None else value.encode()
                short = not flexible
                self._length(None if text is None else len(text), flexible=flexible, short=short)
                self.out += text or b""
            case Primitive("bytes" | "records"):
                self._length(None if value is None else len(value), flexible=flexible)
                self.out += value or b""
            case Primitive("uuid"):
                self.out += value.bytes
            case Primitive("bool"):
                self.out.append(int(value))
            case Primitive("float64"):
                self.out += struct.pack(">d", value)
            case Primitive(name):
                self.out += struct.pack(INTEGERS[name], value)

    def _length(self, length: int | None, *, flexible: bool, short: bool = False) -> None:
        if flexible:
            self.out += write_uvarint(0 if length is None else length + 1)
        else:
            self.out += struct.pack(">h" if short else ">i", -1 if length is None else length)

    def _tagged(self, kind: Struct, values: Body) -> None:
        present: list[tuple[int, bytes]] = []
        for tag, field in kind.tagged_at(self.version).items():
            default = default_of(field, self.version)
            value = values.get(field.name, default)
            if value != default:
                nested = Writer(self.message, self.version)
                nested._field(field, value)
                present.append((tag, bytes(nested.out)))
        self.out += write_uvarint(len(present))
        for tag, content in present:
            self.out += write_uvarint(tag) + write_uvarint(len(content)) + content


class Reader:
    """Reads one message and refuses, by `MalformedError`, all that Kafka would not have written.

    Besides lengths beyond the end, that is: null where the version allows none; a tag that is
    unknown, doubled, out of order, or whose field has its default; a number that takes more bytes
    than it needs; a boolean that is neither 0 nor 1; text that is not UTF-8; an error code that
    does not exist; a negative pause; two elements with the same key.
    """

    def __init__(
        self, message: Message, version: int, data: bytes, errors: Mapping[int, str]
    ) -> None:
        self.message = message
        self.version = version
        self.data = data
        self.errors = errors
        self.position = 0
        self.end = len(data)
        self._path: list[str] = [f"{message.name} v{version}"]

    def refuse(self, reason: str) -> NoReturn:
        """Raises `MalformedError` with the path of what is being read."""
        path = ".".join(self._path)
        message = f"{path}: {reason} (at byte {self.position} of {len(self.data)})"
        raise MalformedError(message)

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        self._path.append(name)
        yield
        self._path.pop()

    def struct(self, kind: Struct) -> dict[str, Any]:
        """Reads the fields of a struct, the tagged ones too."""
        values: dict[str, Any] = {}
        for field in kind.at(self.version):
            with self._within(field.name):
                values[field.name] = self._field(field)
        if self.version in self.message.flexible:
            self._tagged(kind, values)
        return values

    def _field(self, field: Field) -> Any:  # noqa: ANN401
        nullable = self.version in field.nullable
        if isinstance(field.type, Struct):
            if nullable:
                presence = self._integer("int8")
                if presence == -1:
                    return None
                if presence != 1:
                    self.refuse(f"{presence} says neither that it is there nor that it is null")
            return self.struct(field.type)
        flexible = is_flexible(self.message, field, self.version)
        value = self._value(field.type, flexible=flexible, nullable=nullable)
        self._check(field, value)
        return value

    def _check(self, field: Field, value: Any) -> None:  # noqa: ANN401
        if field.name.endswith("ErrorCode") and value not in self.errors:
            self.refuse(f"there is no error {value}")
        if field.name == "ThrottleTimeMs" and value < 0:
            self.refuse(f"a pause of {value} ms")
        if isinstance(field.type, Array) and isinstance(field.type.element, Struct):
            keys = [key.name for key in field.type.element.at(self.version) if key.is_key]
            elements = [tuple(element[key] for key in keys) for element in value or ()]
            if keys and len(set(elements)) != len(elements):
                self.refuse(f"two elements have the same {', '.join(keys)}")

    def _value(self, kind: Type, *, flexible: bool, nullable: bool) -> Any:  # noqa: ANN401
        match kind:
            case Struct():
                return self.struct(kind)
            case Array(element):
                count = self._length(flexible=flexible, nullable=nullable)
                return None if count is None else self._elements(element, count, flexible=flexible)
            case Primitive("string"):
                short = not flexible
                length = self._length(flexible=flexible, nullable=nullable, short=short)
                return None if length is None else self._text(length)
            case Primitive("bytes" | "records"):
                length = self._length(flexible=flexible, nullable=nullable)
                return None if length is None else self._bytes(length)
            case Primitive(name):
                return self._number(name)

    def _number(self, name: str) -> Any:  # noqa: ANN401
        match name:
            case "uuid":
                return UUID(bytes=self._bytes(16))
            case "bool":
                value = self._integer("int8")
                if value not in {0, 1}:
                    self.refuse(f"{value} is no boolean")
                return value == 1
            case "float64":
                return struct.unpack(">d", self._bytes(8))[0]
            case _:
                return self._integer(name)

    def _elements(self, kind: Type, count: int, *, flexible: bool) -> list[Any]:
        if count > self.end - self.position:
            self.refuse(f"{count} elements are more than the bytes that are left")
        elements = []
        for index in range(count):
            with self._within(str(index)):
                elements.append(self._value(kind, flexible=flexible, nullable=False))
        return elements

    def _bytes(self, length: int) -> bytes:
        if length > self.end - self.position:
            self.refuse(f"{length} bytes, and {self.end - self.position} are left")
        start, self.position = self.position, self.position + length
        return self.data[start : self.position]

    def _integer(self, name: str) -> int:
        value: int = struct.unpack(INTEGERS[name], self._bytes(INTEGER_BITS[name] // 8))[0]
        return value

    def _text(self, length: int) -> str:
        try:
            return self._bytes(length).decode()
        except UnicodeDecodeError as error:
            self.refuse(f"not UTF-8: {error}")

    def _uvarint(self) -> int:
        value = 0
        for index in range(UVARINT_BYTES_MAX):
            (byte,) = self._bytes(1)
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
        else:
            self.refuse("a number has no end")
        if byte == 0 and index > 0:
            self.refuse("a number takes more bytes than it needs")
        if value > LENGTH_MAX + 1:
            self.refuse(f"{value} is no length")
        return value

    def _length(self, *, flexible: bool, nullable: bool, short: bool = False) -> int | None:
        length = self._uvarint() - 1 if flexible else self._integer("int16" if short else "int32")
        if length == -1:
            if not nullable:
                self.refuse("null, which this version does not allow")
            return None
        if length < -1:
            self.refuse(f"a length of {length}")
        return length

    def _tagged(self, kind: Struct, values: dict[str, Any]) -> None:
        known = kind.tagged_at(self.version)
        for field in known.values():
            values[field.name] = default_of(field, self.version)
        last = -1
        for _ in range(self._uvarint()):
            tag = self._uvarint()
            if tag <= last:
                self.refuse(f"tag {tag} comes after tag {last}")
            if tag not in known:
                self.refuse(f"unknown tag {tag}")
            last = tag
            with self._within(known[tag].name):
                values[known[tag].name] = self._tagged_field(known[tag])

    def _tagged_field(self, field: Field) -> Any:  # noqa: ANN401
        length = self._uvarint()
        if length > self.end - self.position:
            self.refuse(f"{length} bytes, and {self.end - self.position} are left")
        outer, self.end = self.end, self.position + length
        value = self._field(field)
        if self.position != self.end:
            self.refuse(f"{self.end - self.position} bytes of the field are left over")
        self.end = outer
        if value == default_of(field, self.version):
            self.refuse("a tagged field with its default, which is left out")
        return value
