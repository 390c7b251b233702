"""The types of `brokers.usage` and the extension's description of them have the same fields."""

from __future__ import annotations

import ast
import types
import typing
from dataclasses import fields
from pathlib import Path

import pytest

from brokers.metadata_records import SealedEnd
from brokers.usage import LaneFiles, LaneReading, PartitionSegments, UsageReader

STUB = Path(__file__).parents[2] / "brokers" / "_core.pyi"
# What the extension returns as a list becomes a tuple, which cannot be changed.
LISTS = "list"


@pytest.fixture(scope="module")
def stub():
    """The classes of the stub by name."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def method_of(stub, name):
    """A method of the extension's `UsageReader`."""
    (method,) = (node for node in stub["UsageReader"].body if getattr(node, "name", "") == name)
    return method


def returned_by(stub, name):
    return ast.unparse(method_of(stub, name).returns)


def argument_type(stub, name, keyword):
    """The type of a keyword argument of a method."""
    arguments = method_of(stub, name).args
    annotations = {argument.arg: argument.annotation for argument in arguments.kwonlyargs}
    return ast.unparse(annotations[keyword])


def members_of(kind):
    """The types of a dataclass's fields by name, in their order."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def text_of(kind):
    """A type as the stub writes it: dataclasses as tuples of their fields, sequences as lists."""
    if hasattr(kind, "__dataclass_fields__"):
        return f"tuple[{', '.join(text_of(part) for part in members_of(kind).values())}]"
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and parts[-1] is Ellipsis:
        return f"{LISTS}[{text_of(parts[0])}]"
    if origin is tuple:
        return f"tuple[{', '.join(text_of(part) for part in parts)}]"
    if origin is types.UnionType:
        return " | ".join(text_of(part) for part in parts)
    return "None" if kind is type(None) else kind.__name__


def test_a_reading_has_the_fields_of_the_extension(stub):
    described = {
        node.target.id: ast.unparse(node.annotation)
        for node in stub["_LaneReading"].body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    # The extension returns the texts of a reading as tuples already.
    kept = {
        name: text_of(kind).replace(LISTS, "tuple")
        for name, kind in members_of(LaneReading).items()
    }
    assert list(described.items()) == [
        (name, text.replace("tuple[str]", "tuple[str, ...]")) for name, text in kept.items()
    ]


def test_the_files_of_a_lane_are_those_of_the_extension(stub):
    assert returned_by(stub, "lanes") == f"list[{text_of(LaneFiles)}]"


def test_what_a_partition_stores_is_what_the_extension_returns(stub):
    parts = list(members_of(PartitionSegments).values())
    # The last three fields come in a tuple of their own.
    own, past = ([text_of(part) for part in group] for group in (parts[:-3], parts[-3:]))
    returned = f"list[tuple[{', '.join(own)}, tuple[{', '.join(past)}]]]"
    assert returned_by(stub, "manifests") == returned


def test_the_end_of_a_lane_is_given_as_the_extension_takes_it(stub):
    assert argument_type(stub, "read_lane", "sealed_end") == f"{text_of(SealedEnd)} | None"


def test_both_readers_have_the_same_methods(stub):
    names = {getattr(node, "name", "_") for node in stub["UsageReader"].body}
    public = {name for name in names if not name.startswith("_")}
    assert public == {name for name in vars(UsageReader) if not name.startswith("_")}
