"""Servers that `.ci/servers` builds from their sources, which everyday tests do without."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".tools" / "bin"


class _Running:
    """Which test runs now, as `tests/conftest.py` says. Benches and demos set nothing here."""

    everyday: str | None = None


def begin_test(name: str, *, full: bool) -> None:
    """Notes that a test begins; its fixtures count as part of it."""
    _Running.everyday = None if full else name


def built(name: str) -> Path:
    """Returns the path of the server `name`, which `.ci/servers` has built.

    Raises `AssertionError` for an everyday test: `make test` builds none, as each takes minutes.
    """
    test = _Running.everyday
    assert test is None, f"{name} is built for `full` tests alone; mark {test} pytest.mark.full"
    path = FOLDER / name
    assert path.exists(), f"no {name} in {FOLDER}: run .ci/servers {name}"
    return path
