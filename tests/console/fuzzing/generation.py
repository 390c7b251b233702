"""The cases that Schemathesis makes of the committed OpenAPI file, always the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.hypothesis.examples import generate_one
from schemathesis.schemas import APIOperation, BaseSchema

from tests.console.fuzzing.described import document

AnyCase: TypeAlias = Case[Any]
AnyOperation: TypeAlias = APIOperation[Any, Any, Any, Any]

CONFIG = {
    "generation": {"deterministic": True, "database": "none"},
    # The walk tries the methods that an address does not have.
    "phases": {"coverage": {"unexpected-methods": []}},
}


@cache
def description() -> BaseSchema:
    """The committed file as Schemathesis reads it."""
    return schemathesis.openapi.from_dict(document(), config=SchemathesisConfig.from_dict(CONFIG))


def cases_of(label: str, *, boundaries: int, drawn: int) -> Iterator[AnyCase]:
    """Cases of an operation: those of its examples, boundaries, and what Hypothesis draws.

    `boundaries`: one in so many of them. `drawn`: so many of each kind, allowed and not.
    """
    operation = description().find_operation_by_label(label)
    assert operation is not None, label
    for strategy in operation.get_strategies_from_examples():
        yield generate_one(strategy)
    schema = operation.schema
    modes = list(GenerationMode)
    limits = schema.iter_coverage_cases(
        operation,
        generation_modes=modes,
        generation_config=schema.config.generation_for(operation=operation, phase="coverage"),
    )
    first = hashlib.sha256(label.encode()).digest()[0]
    for number, case in enumerate(limits, first):
        if number % boundaries == 0:
            yield case
    for mode in modes:
        yield from _drawn(operation, mode, drawn)


def _drawn(operation: AnyOperation, mode: GenerationMode, count: int) -> list[AnyCase]:
    """What Hypothesis makes of an operation; nothing where it can be nothing."""
    found: list[AnyCase] = []

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def collect(case: AnyCase) -> None:
        found.append(case)

    # An operation without a parameter has no wrong ones.
    with suppress(Unsatisfiable):
        collect()
    return found
