"""Options that many commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from console.programs.cli import names
from console.programs.cli.session import JSON, TABLE, Session

WAIT_TIMEOUT_S = 600


def _session_setter(member: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Returns a callback of click that sets a member of the session to the option's value."""

    def set_member(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value:
            setattr(ctx.ensure_object(Session), member, value)
        return value

    return set_member


def common_options() -> list[click.Parameter]:
    """Returns the options that every command has."""
    return [
        click.Option(
            ["--output", "-o"],
            type=click.Choice([TABLE, JSON]),
            callback=_session_setter("output"),
            expose_value=False,
            is_eager=True,
            help="`table`, or `json`: the API's objects. Default: FRESHET_OUTPUT, or table.",
        ),
        click.Option(
            ["--profile", "-p"],
            callback=_session_setter("profile_name"),
            expose_value=False,
            is_eager=True,
            help="A profile of `freshet login`. Default: FRESHET_PROFILE, or the one in use.",
        ),
    ]


def cluster_option() -> click.Option:
    """Returns --cluster."""
    return click.Option(
        ["--cluster", "-c"],
        metavar="NAME_OR_ID",
        shell_complete=names.completion_of(names.CLUSTERS),
        help="The cluster. Default: FRESHET_CLUSTER, or the one of `freshet use`.",
    )


def limit_option(items_max: int) -> click.Option:
    """Returns --limit of a list. `items_max`: its default; 0 for all."""
    return click.Option(
        ["--limit"],
        type=click.IntRange(min=0),
        default=items_max,
        show_default=bool(items_max),
        help="Show at most N; 0: all." if items_max else "Show at most N. Default: all.",
    )


def waiting_options() -> list[click.Parameter]:
    """Returns --wait and --timeout of an operation."""
    return [
        click.Option(["--wait", "-w"], is_flag=True, help="Wait until it is done."),
        timeout_option(),
    ]


def timeout_option() -> click.Option:
    """Returns --timeout of an operation."""
    return click.Option(
        ["--timeout"],
        type=click.IntRange(min=1),
        default=WAIT_TIMEOUT_S,
        show_default=True,
        help="Wait at most so many seconds.",
    )


def file_option() -> click.Option:
    """Returns --file of an answer that is saved."""
    return click.Option(
        ["--file", "-f"],
        type=click.Path(dir_okay=False, allow_dash=True),
        help="The file it is saved to; `-` is the standard output.",
    )


def yes_option() -> click.Option:
    """Returns --yes."""
    return click.Option(["--yes", "-y"], is_flag=True, help="Confirm without a question.")
