"""Prints answers of the API, or saves them to files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.programs.cli import output
from console.programs.cli.client import segment
from console.programs.cli.errors import OPERATION_FAILED, CommandError, Unreachable
from console.programs.cli.session import Session
from console.programs.cli.transport import Lost

# The longest time for which the service holds a request for an operation.
WAIT_S = 30
FINAL = {"succeeded", "failed", "cancelled"}


def print_page(
    session: Session, items: list[dict[str, Any]], cursor: str | None, columns: str
) -> None:
    """Prints items of a list: as a table, or as JSON with the cursor where the session wants JSON.

    `cursor`: where the list goes on; None where there are no more. After a table that goes on, a
    note on the standard error says so. `columns`: the table's columns, as `columns_of` reads them.
    """
    if session.as_json:
        session.print_json({"items": items, "next_cursor": cursor})
        return
    print_rows(session, items, columns)
    if cursor:
        session.note(f"These are the first {len(items)}; there are more: --limit 0 shows all.")


def print_items(session: Session, answer: dict[str, Any], columns: str) -> None:
    """Prints an answer that holds all items of a list."""
    if session.as_json:
        session.print_json(answer)
        return
    print_rows(session, answer["items"], columns)
    for batch in answer.get("damaged", []):
        session.note(damage_text(batch))


def damage_text(batch: Mapping[str, Any]) -> str:
    """Returns a line about a damaged batch that was skipped."""
    # Text since digits were lost in numbers, and numbers of an older service.
    first, last = int(batch["first_offset"]), int(batch["next_offset"]) - 1
    what = (
        f"1 offset ({first})" if first == last else f"{last - first + 1} offsets ({first}–{last})"
    )
    return f"Partition {batch['partition']}: {what} cannot be decoded: skipped."


def print_rows(session: Session, rows: list[dict[str, Any]], columns: str) -> None:
    """Prints a table, or a note that it is empty."""
    if rows:
        session.print_lines(output.table_lines(rows, columns))
    else:
        session.note("There are none.")


def print_object(session: Session, answer: Mapping[str, Any] | None) -> None:
    """Prints one object of the API."""
    if session.as_json:
        session.print_json(answer)
    else:
        session.print_lines(output.detail_lines(answer or {}))


def print_operation(
    session: Session, operation: dict[str, Any], *, wait: bool, timeout_s: int
) -> None:
    """Prints an operation; with `wait` only once it has ended.

    Raises `CommandError` where it failed, was cancelled, or took longer than `timeout_s`.
    """
    if wait:
        operation = await_operation(session, operation, timeout_s)
    print_object(session, operation)
    if not wait:
        session.note(
            f"It goes on by itself. To wait for it: freshet operation wait {operation['id']}"
        )
    if operation["state"] in {"failed", "cancelled"}:
        error = operation.get("error") or {}
        detail = error.get("detail") or "No reason was given."
        message = f"The operation {operation['state']}: {detail}"
        raise CommandError(message, code=OPERATION_FAILED)


def await_operation(session: Session, operation: dict[str, Any], timeout_s: int) -> dict[str, Any]:
    """Returns the operation once it has ended. Raises `CommandError` after `timeout_s`."""
    end = session.clock() + timeout_s
    while operation["state"] not in FINAL:
        remaining_s = int(end - session.clock())
        if remaining_s <= 0:
            raise CommandError(
                f"The operation is {operation['state']} after {timeout_s} s.",
                advice=f"It goes on by itself: freshet operation wait {operation['id']}",
                code=OPERATION_FAILED,
            )
        path = f"/operations/{segment(operation['id'])}"
        operation = session.client.get(path, wait=min(WAIT_S, remaining_s))
    return operation


def save_file(session: Session, path: str, query: Mapping[str, object], file: str) -> None:
    """Saves an answer to a file as it arrives; a file that exists is replaced once all has arrived.

    `file`: its path; `-` for the standard output. Raises `Unreachable` where the answer was cut
    short, `CommandError` where the file cannot be written.
    """
    try:
        with session.client.stream(path, query=query) as reply:
            if file == "-":
                for chunk in reply.chunks():
                    session.write_bytes(chunk)
                return
            target = Path(file)
            part = target.with_name(f".{target.name}.part")
            try:
                with part.open("wb") as opened:
                    for chunk in reply.chunks():
                        opened.write(chunk)
                part.replace(target)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except Lost as lost:
        raise Unreachable(f"The answer did not arrive completely: {lost}.") from lost
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
    session.note(f"Written to {file}.")


def flush_output() -> None:
    """Flushes the standard output; does nothing where its reader has gone away."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
