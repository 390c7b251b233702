"""Django's settings (`DJANGO_SETTINGS_MODULE=console.settings`), assembled from `config`.

They are made when one of them is first read and not when this package is imported, so that programs
that import only `console.settings.config` (supervisor, keeper) need neither a secret key nor a
home.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _assembled_settings() -> dict[str, Any]:
    from console.settings.assemble import django_settings  # noqa: PLC0415
    from console.settings.config import load_config  # noqa: PLC0415

    return django_settings(load_config())


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a setting has any type
    if name.isupper() and name in _assembled_settings():
        return _assembled_settings()[name]
    message = f"console.settings has no {name}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(_assembled_settings())
