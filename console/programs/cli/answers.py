"""Answers of the API, printed."""

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

# The service holds a request for an operation this long at most.
WAIT_S = 30
FINAL = {"succeeded", "failed", "cancelled"}


def print_page(
    session: Session, items: list[dict[str, Any]], cursor: str | None, columns: str
) -> None:
    """Prints items of a list; `cursor` tells that there are more."""
    if session.as_json:
        session.print_json({"items": items, "next_cursor": cursor})
        return
    print_rows(session, items, columns)
    if cursor:
        session.note(f"These are {len(items)}; there are more: --limit 0 shows all.")


def print_items(session: Session, answer: dict[str, Any], columns: str) -> None:
    """Prints an answer that holds items, as it is."""
    if session.as_json:
        session.print_json(answer)
    else:
        print_rows(session, answer["items"], columns)


def print_rows(session: Session, rows: list[dict[str, Any]], columns: str) -> None:
    """Prints a table, or says that there is nothing in it."""
    if rows:
        session.print_lines(output.table(rows, columns))
    else:
        session.note("There are none.")


def print_object(session: Session, answer: Mapping[str, Any] | None) -> None:
    """Prints one object."""
    if session.as_json:
        session.print_json(answer)
    else:
        session.print_lines(output.details(answer or {}))


def print_operation(
    session: Session, operation: dict[str, Any], *, wait: bool, timeout_s: int
) -> None:
    """Prints an operation, once it is final where that is wanted.

    Raises CommandError if it failed, or took longer.
    """
    if wait:
        operation = await_operation(session, operation, timeout_s)
    print_object(session, operation)
    if not wait:
        session.note(f"It goes on by itself; wait with: freshet operation wait {operation['id']}")
    if operation["state"] in {"failed", "cancelled"}:
        error = operation.get("error") or {}
        detail = error.get("detail") or "No reason was given."
        message = f"The operation {operation['state']}: {detail}"
        raise CommandError(message, code=OPERATION_FAILED)


def await_operation(session: Session, operation: dict[str, Any], timeout_s: int) -> dict[str, Any]:
    """The operation once it is final. Raises CommandError when it took longer."""
    end = session.clock() + timeout_s
    while operation["state"] not in FINAL:
        left = int(end - session.clock())
        if left <= 0:
            raise CommandError(
                f"The operation is {operation['state']} after {timeout_s} s.",
                advice=f"It goes on by itself: freshet operation wait {operation['id']}",
                code=OPERATION_FAILED,
            )
        path = f"/operations/{segment(operation['id'])}"
        operation = session.client.get(path, wait=min(WAIT_S, left))
    return operation


def save(session: Session, path: str, query: Mapping[str, object], file: str) -> None:
    """Writes an answer into a file as it arrives, all of it or none."""
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


def flush() -> None:
    """Everything that was printed goes out now; whoever reads may be gone."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
