"""Compares an object of the API server with the manifest that we apply: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def has_fields(desired: Any, actual: Any) -> bool:  # noqa: ANN401 (JSON)
    """Whether `actual` has every field of `desired` with its value; further fields do not matter.

    Lists must be equal in length and order, because the driver manages each list as a whole.
    """
    if isinstance(desired, Mapping):
        return isinstance(actual, Mapping) and all(
            has_fields(value, actual.get(name)) for name, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(actual, list)
            and len(desired) == len(actual)
            and all(map(has_fields, desired, actual))
        )
    return bool(desired == actual)


def differing_paths(desired: Any, actual: Any, path: str = "") -> list[str]:  # noqa: ANN401 (JSON)
    """The paths of the fields that differ, for people. Values are left out: some are secret."""
    if isinstance(desired, Mapping) and isinstance(actual, Mapping):
        return [
            difference
            for name, value in desired.items()
            for difference in differing_paths(value, actual.get(name), f"{path}.{name}")
        ]
    if isinstance(desired, list) and isinstance(actual, list) and len(desired) == len(actual):
        return [
            difference
            for number, value in enumerate(desired)
            for difference in differing_paths(value, actual[number], f"{path}[{number}]")
        ]
    return [] if has_fields(desired, actual) else [path.removeprefix(".")]
