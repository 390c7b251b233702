"""Every code that a problem document can have: the list is part of the OpenAPI file.

Consoles and other clients explain problems by their codes, so they can be tested against this list.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps

from console.base.common.api.problems import FrameworkError
from console.base.common.errors import AppError

OURS = ("console.", "provisioning", "metering", "billing")
# The modules of this package that have errors, beside `errors` of each application.
MODULES = (
    "console.base.common.errors",
    "console.base.common.api.problems",
    "console.base.common.api.views",
    "console.base.common.idempotency",
    "console.base.common.places",
    "console.base.common.rates",
)


def problem_codes() -> dict[str, dict[str, Any]]:
    """Returns every code, sorted, with its `title` and the `statuses` of its answers."""
    modules = {*MODULES, *_error_modules()}
    for module in modules:
        import_module(module)
    kinds = [kind for kind in _subclasses(AppError) if kind.__module__ in modules]
    codes: dict[str, dict[str, Any]] = {}
    for status, code in FrameworkError.codes.items():
        codes[code] = {"title": HTTPStatus(status).phrase, "statuses": {status}}
    for kind in kinds:
        if kind is not FrameworkError and "code" in vars(kind):
            codes[kind.code] = {"title": kind.title, "statuses": set()}
    for kind in kinds:
        if kind is not FrameworkError:
            codes[kind.code]["statuses"].add(kind.status)
    return {
        code: {**known, "statuses": sorted(known["statuses"])}
        for code, known in sorted(codes.items())
    }


def _error_modules() -> Iterator[str]:
    """Yields each module `errors` of an application, or of a part of it."""
    for app in apps.get_app_configs():
        if not app.name.startswith(OURS):
            continue
        if find_spec(f"{app.name}.errors") is not None:
            yield f"{app.name}.errors"
        for file in sorted(Path(app.path).glob("*/errors.py")):
            yield f"{app.name}.{file.parent.name}.errors"


def _subclasses(kind: type[AppError]) -> Iterator[type[AppError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def list_codes(
    result: dict[str, Any], generator: object, request: object, public: object
) -> dict[str, Any]:
    """Adds the list of all codes to the description of problems, as `x-codes`."""
    result["components"]["schemas"]["Problem"]["properties"]["code"]["x-codes"] = problem_codes()
    return result
