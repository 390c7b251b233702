"""What a test leaves of the service's settings: nothing, or it fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

# The settings that all tests begin with: those that Django had when the first one ended or began.
_begun: dict[str, Any] = {}


def remember() -> None:
    """Notes the service's settings before the first test."""
    if settings.configured and "FRESHET" not in _begun and hasattr(settings, "FRESHET"):
        _begun["FRESHET"] = getattr(settings, "FRESHET")  # noqa: B009 - untyped


def check(test: str) -> None:
    """Fails where the service's settings are not those of the beginning; puts these back."""
    if "FRESHET" not in _begun:
        return
    before, after = _begun["FRESHET"], getattr(settings, "FRESHET")  # noqa: B009 - untyped
    if before == after:
        return
    settings.FRESHET = before
    names = ", ".join(differences(before, after, ""))
    pytest.fail(f"{test} leaves settings changed: {names}. Use the fixture `settings`.", False)


def differences(before: Any, after: Any, name: str) -> Iterator[str]:  # noqa: ANN401 - any value
    """Yields the names of settings that differ, such as `limits.api_keys`."""
    if not dataclasses.is_dataclass(before) or type(before) is not type(after):
        if before != after:
            yield name
        return
    for field in dataclasses.fields(before):
        path = f"{name}.{field.name}" if name else field.name
        yield from differences(getattr(before, field.name), getattr(after, field.name), path)
