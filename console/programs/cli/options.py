"""Options that many commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from console.programs.cli import names
from console.programs.cli.session import JSON, TABLE, Session

WAIT_TIMEOUT_S = 600


def _setting(member: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Puts an option's value into the session."""

    def put(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        del param
        if value:
            setattr(ctx.ensure_object(Session), member, value)
        return value

    return put


def common() -> list[click.Parameter]:
    """What every command has."""
    return [
        click.Option(
            ["--output", "-o"],
            type=click.Choice([TABLE, JSON]),
            callback=_setting("output"),
            expose_value=False,
            is_eager=True,
            help="For people, or the API's objects as JSON. Default: FRESHET_OUTPUT, else table.",
        ),
        click.Option(
            ["--profile", "-p"],
            callback=_setting("profile_name"),
            expose_value=False,
            is_eager=True,
            help="The profile of `freshet login`. Default: FRESHET_PROFILE, the one in use.",
        ),
    ]


def cluster() -> click.Option:
    """Which cluster."""
    return click.Option(
        ["--cluster", "-c"],
        metavar="NAME_OR_ID",
        shell_complete=names.completing(names.CLUSTERS),
        help="The cluster. Default: FRESHET_CLUSTER, the one of `freshet use`.",
    )


def limit(items_max: int) -> click.Option:
    """How much of a list."""
    return click.Option(
        ["--limit"],
        type=click.IntRange(min=0),
        default=items_max,
        show_default=bool(items_max),
        help="Show so many at most; 0: all."
        if items_max
        else "Show so many at most. Default: all.",
    )


def waiting() -> list[click.Parameter]:
    """Whether an operation is waited for."""
    return [
        click.Option(["--wait", "-w"], is_flag=True, help="Wait until it is done."),
        timeout(),
    ]


def timeout() -> click.Option:
    """How long an operation is waited for."""
    return click.Option(
        ["--timeout"],
        type=click.IntRange(min=1),
        default=WAIT_TIMEOUT_S,
        show_default=True,
        help="Wait so many seconds at most.",
    )


def file() -> click.Option:
    """Where a file goes."""
    return click.Option(
        ["--file", "-f"],
        type=click.Path(dir_okay=False, allow_dash=True),
        help="Where it is written; `-` is the standard output.",
    )


def yes() -> click.Option:
    """Nobody is asked."""
    return click.Option(["--yes", "-y"], is_flag=True, help="Do not ask.")
