"""`freshet lag`: shows how far consumer groups are behind, once or repeatedly."""

from __future__ import annotations

import sys
from typing import Any

import click

from console.programs.cli import names, options, output
from console.programs.cli.client import segment
from console.programs.cli.session import Session, pass_session

CLEAR = "\x1b[2J\x1b[H"
GROUP_COLUMNS = "group state lag seconds:lag_seconds sampled_at"
PARTITION_COLUMNS = "topic partition committed end lag seconds:lag_seconds"


@pass_session
def show_lag(
    session: Session, /, group: str | None, cluster: str | None, *, watch: bool, **values: Any
) -> None:
    """Show how far a group is behind, in records and in seconds; without GROUP, all groups.

    For a sleeping cluster it shows the last known lag. With -o json and --watch it prints one line
    each time.
    """
    cluster_id = names.cluster_id(session, cluster)
    path = f"/clusters/{segment(cluster_id)}/groups" + (f"/{segment(group)}" if group else "")
    shown = 0
    while True:
        if group:
            _print_group(session, session.client.get(path), values["topic"], watch=watch)
        else:
            items, cursor = session.client.pages(path)
            _print_groups(session, items, cursor, watch=watch)
        sys.stdout.flush()
        shown += 1
        if not watch or shown == values["rounds"]:
            return
        session.pause(values["interval"])


def _clear_screen(*, watch: bool) -> None:
    if watch and sys.stdout.isatty():
        sys.stdout.write(CLEAR)


def _print_group(
    session: Session, answer: dict[str, Any], topic: str | None, *, watch: bool
) -> None:
    if session.as_json:
        session.print_json(answer, indent=None if watch else 2)
        return
    _clear_screen(watch=watch)
    rows = [partition for partition in answer["partitions"] if topic in {None, partition["topic"]}]
    lines = output.table_lines([answer], GROUP_COLUMNS)
    session.print_lines([*lines, "", *output.table_lines(rows, PARTITION_COLUMNS)])


def _print_groups(
    session: Session, items: list[dict[str, Any]], cursor: str | None, *, watch: bool
) -> None:
    if session.as_json:
        page = {"items": items, "next_cursor": cursor}
        session.print_json(page, indent=None if watch else 2)
        return
    _clear_screen(watch=watch)
    if items:
        session.print_lines(output.table_lines(items, GROUP_COLUMNS))
    else:
        session.note("There are none.")


def lag_command() -> click.Command:
    """Returns `freshet lag`."""
    argument = names.build_argument(f"{names.IN_CLUSTER}/groups", "group", "GROUP")
    argument.required = False
    parameters: list[click.Parameter] = [
        argument,
        click.Option(["--topic"], help="Only partitions of this topic."),
        click.Option(["--watch", "-w"], is_flag=True, help="Show it repeatedly, until Ctrl-C."),
        click.Option(
            ["--interval"],
            type=click.FloatRange(min=0.5),
            default=2.0,
            show_default=True,
            help="With --watch: seconds between two times.",
        ),
        click.Option(
            ["--rounds"], type=click.IntRange(min=1), help="With --watch: end after N times."
        ),
        options.cluster_option(),
        *options.common_options(),
    ]
    return click.Command("lag", callback=show_lag, params=parameters, help=show_lag.__doc__)
