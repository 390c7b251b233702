"""The cases that Schemathesis makes from the committed OpenAPI file, the same in each run."""

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
    # `test_walk.py` tries the methods that a path does not have.
    "phases": {"coverage": {"unexpected-methods": []}},
}


@cache
def description() -> BaseSchema:
    """Returns the committed file as Schemathesis reads it."""
    return schemathesis.openapi.from_dict(document(), config=SchemathesisConfig.from_dict(CONFIG))


def cases_of(label: str, *, boundaries: int, drawn: int) -> Iterator[AnyCase]:
    """Yields cases of an operation: from its examples, boundary values, and random ones.

    Every `boundaries`th boundary case is taken, and `drawn` random cases each of valid and invalid
    requests.
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
        yield from _draw_cases(operation, mode, drawn)


def _draw_cases(operation: AnyOperation, mode: GenerationMode, count: int) -> list[AnyCase]:
    """Returns `count` cases that Hypothesis draws; none if there can be none of this mode."""
    cases: list[AnyCase] = []

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
        cases.append(case)

    # An operation without parameters has no invalid requests.
    with suppress(Unsatisfiable):
        collect()
    return cases
