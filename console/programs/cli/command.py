"""Commands as rows of a table: the request, the values it takes, and how its answer is shown."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

import click

from console.programs.cli import answers, names, options
from console.programs.cli.client import ApiAnswer, segment
from console.programs.cli.errors import CommandError
from console.programs.cli.fields import Field, Kind, body_of, query_of
from console.programs.cli.session import Session, pass_session

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
CLUSTER_PATH = "/clusters/{cluster_id}"


class Shape(StrEnum):
    """The kind of a command's answer, which decides how it is printed."""

    # One object.
    OBJECT = auto()
    # `{"items": […], "next_cursor": …}`, of which all pages are read.
    PAGES = auto()
    # `{"items": […]}` in one answer.
    ITEMS = auto()
    # An operation, which can be waited for.
    OPERATION = auto()
    # No content.
    NOTHING = auto()
    # A text, which is printed as it is.
    TEXT = auto()
    # A file, which is saved.
    FILE = auto()


class Confirm(StrEnum):
    """How a person at a terminal confirms a command. `--yes` confirms it without a question."""

    NO = auto()
    YES = auto()
    # The person types the name, which is sent as `?name=`.
    NAME = auto()


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command of the table.

    `words`: the words of the command line, such as `topic list`. `request`: method and path as in
    the OpenAPI file; `{cluster_id}` below `/clusters` is the option --cluster, every other
    parameter of the path an argument. `columns`: those of the table of its items (see
    `output.columns_of`).
    """

    words: str
    request: str
    about: str
    fields: tuple[Field, ...] = ()
    shape: Shape = Shape.OBJECT
    columns: str = ""
    confirm: Confirm = Confirm.NO
    # Whether a name that both a deleted and a present item have means the deleted one.
    over: bool = False
    # How many items a list shows without --limit; 0: all.
    items_max: int = 0
    # For a FILE: its name without --file, in which the argument takes the place of `*`.
    file: str = ""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.request.split()[0]

    @property
    def path(self) -> str:
        """The path below `/api/v1`, with its parameters."""
        return self.request.split()[1]

    def arguments(self) -> list[str]:
        """Returns the parameters of the path that are arguments."""
        return [name for name in _PATH_PARAMETER.findall(self.path) if name != "cluster_id"]

    @property
    def in_cluster(self) -> bool:
        """Whether the command is about something in a cluster."""
        return self.path.startswith(CLUSTER_PATH)


def build_command(command: CommandRow) -> click.Command:
    """Returns the command of click for a row."""

    @pass_session
    def run_row(session: Session, /, **values: Any) -> None:
        CommandRun(command, session, values).execute()

    return click.Command(
        command.words.split()[-1],
        callback=run_row,
        params=parameters_of(command),
        help=command.about,
    )


def parameters_of(command: CommandRow) -> list[click.Parameter]:
    """Returns the arguments and options of a row, as click's parameters."""
    parameters: list[click.Parameter] = []
    for name in command.arguments():
        collection = collection_of(command.path, name)
        parameters.append(
            names.build_argument(collection, f"p_{name}", names.metavar_of(collection))
        )
    arguments = [field for field in command.fields if field.argument]
    others = [field for field in command.fields if not field.argument]
    parameters += [names.build_parameter(field) for field in [*arguments, *others]]
    if command.in_cluster:
        parameters.append(options.cluster_option())
    if command.shape is Shape.PAGES:
        parameters.append(options.limit_option(command.items_max))
    if command.shape is Shape.OPERATION:
        parameters += options.waiting_options()
    if command.shape is Shape.FILE:
        parameters.append(options.file_option())
    if command.confirm is not Confirm.NO:
        parameters.append(options.yes_option())
    return [*parameters, *options.common_options()]


def collection_of(path: str, name: str) -> str:
    """Returns the path of the list that a parameter's item is in, such as
    `/clusters/{cluster_id}/topics` for a topic."""
    return path.partition(f"/{{{name}}}")[0]


@dataclass(slots=True)
class CommandRun:
    """One run of a command. `values`: what click read from the command line, by parameter."""

    command: CommandRow
    session: Session
    values: dict[str, Any]

    def execute(self) -> None:
        """Sends the request and prints its answer. Raises `CommandError`."""
        command, session = self.command, self.session
        self._ask_for_secrets()
        self._resolve_references()
        try:
            query = query_of(command.fields, self.values)
            body = body_of(command.fields, self.values)
        except ValueError as error:
            raise CommandError(str(error)) from error
        if command.method == "PATCH" and not body:
            raise CommandError(
                "There is nothing to change.",
                advice=f"`freshet {command.words} --help` lists what can be changed.",
            )
        path, named = self._resolve_path(query)
        match command.shape:
            case Shape.PAGES:
                items, cursor = session.client.pages(path, query, items_max=self.values["limit"])
                answers.print_page(session, items, cursor, command.columns)
            case Shape.FILE:
                file = self.values["file"] or command.file.replace("*", named)
                answers.save_file(session, path, query, file)
            case _:
                answer = session.client.call(command.method, path, query=query, body=body or None)
                self._print_answer(answer)

    def _print_answer(self, answer: ApiAnswer) -> None:
        match self.command.shape:
            case Shape.TEXT:
                self.session.write_bytes(answer.content)
            case Shape.NOTHING:
                self.session.note("Done.")
            case Shape.ITEMS:
                answers.print_items(self.session, answer.json(), self.command.columns)
            case Shape.OPERATION:
                answers.print_operation(
                    self.session,
                    answer.json(),
                    wait=self.values["wait"],
                    timeout_s=self.values["timeout"],
                )
            case _:
                answers.print_object(self.session, answer.json())

    def _ask_for_secrets(self) -> None:
        for field in self.command.fields:
            if field.kind is Kind.SECRET and field.required and not self.values.get(field.key):
                what = field.flag_name.replace("-", " ").capitalize()
                self.values[field.key] = click.prompt(what, hide_input=True, err=True)

    def _resolve_references(self) -> None:
        for field in self.command.fields:
            text = self.values.get(field.key)
            if field.kind is Kind.REFERENCE and text:
                self.values[field.key] = names.resolve_id(self.session, field.collection, text)

    def _resolve_path(self, query: dict[str, Any]) -> tuple[str, str]:
        """Returns the path with ids in it, and the name of its last item.

        Asks for confirmation where the command needs one. With `Confirm.NAME` it adds the name to
        `query`.
        """
        path, item_name, cluster_id = self.command.path, "", ""
        if self.command.in_cluster:
            cluster_id = names.cluster_id(self.session, self.values["cluster"])
        for name in self.command.arguments():
            collection = collection_of(self.command.path, name)
            item_name = item_id = self.values[f"p_{name}"]
            if self.command.confirm is Confirm.NAME:
                item = names.find_item(self.session, collection, item_name, cluster_id=cluster_id)
                item_id, item_name = item["id"], item["name"]
                query["name"] = item_name
            else:
                item_id = names.resolve_id(
                    self.session,
                    collection,
                    item_name,
                    cluster_id=cluster_id,
                    over=self.command.over,
                )
            path = path.replace(f"{{{name}}}", segment(item_id))
        self._ask_whether_meant(item_name)
        return path.replace("{cluster_id}", segment(cluster_id)), item_name

    def _ask_whether_meant(self, named: str) -> None:
        """Asks for confirmation unless --yes is given.

        Raises `CommandError` where it is refused.
        """
        if self.command.confirm is Confirm.NO or self.values["yes"]:
            return
        what = f"{self.command.words} {named}".strip()
        if not sys.stdin.isatty():
            raise CommandError(
                f"`freshet {what}` asks for confirmation, and this is no terminal.",
                advice="Add --yes to confirm it.",
            )
        if self.command.confirm is Confirm.NAME:
            meant = click.prompt(f"{what}: type its name to go on", err=True) == named
        else:
            meant = click.confirm(f"{what}?", err=True)
        if not meant:
            raise CommandError("Nothing was done.")
