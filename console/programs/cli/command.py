"""Commands as rows of a table: which request, which values it takes, what its answer looks like."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

import click

from console.programs.cli import answers, names, options
from console.programs.cli.client import Answer, segment
from console.programs.cli.errors import CommandError
from console.programs.cli.fields import Field, Kind, body_of, query_of
from console.programs.cli.session import Session, pass_session

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
CLUSTER_PATH = "/clusters/{cluster_id}"


class Shape(StrEnum):
    """What an answer is."""

    # One object.
    OBJECT = auto()
    # `{"items": […], "next_cursor": …}`, all pages of it.
    PAGES = auto()
    # The same without pages.
    ITEMS = auto()
    # Slow work, which can be waited for.
    OPERATION = auto()
    # Nothing but that it is done.
    NOTHING = auto()
    # A text as it is.
    TEXT = auto()
    # A file to be kept.
    FILE = auto()


class Confirm(StrEnum):
    """How somebody at a terminal says that they mean it; `--yes` says so for them."""

    NO = auto()
    YES = auto()
    # By typing the name, which is sent as `?name=`.
    NAME = auto()


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the table.

    `words`: how it is called. `request`: method and path as OpenAPI has it; a `{cluster_id}` inside
    is the option --cluster, every other parameter an argument. `columns`: of a table of its items.
    """

    words: str
    request: str
    about: str
    fields: tuple[Field, ...] = ()
    shape: Shape = Shape.OBJECT
    columns: str = ""
    confirm: Confirm = Confirm.NO
    # Whether the argument's name means something deleted rather than what goes on.
    over: bool = False
    # Items that a list shows unless --limit says otherwise; 0: all.
    items_max: int = 0
    # Of a FILE: its name unless --file says otherwise, with the argument for `*`.
    file: str = ""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.request.split()[0]

    @property
    def path(self) -> str:
        """The path with its parameters, below `/api/v1`."""
        return self.request.split()[1]

    def arguments(self) -> list[str]:
        """Parameters of the path that are arguments."""
        return [name for name in _PATH_PARAMETER.findall(self.path) if name != "cluster_id"]

    @property
    def in_cluster(self) -> bool:
        """Whether it is about what is in a cluster."""
        return self.path.startswith(CLUSTER_PATH)


def build(command: Command) -> click.Command:
    """What click runs for a row."""

    @pass_session
    def callback(session: Session, /, **given: Any) -> None:
        Run(command, session, given).go()

    return click.Command(
        command.words.split()[-1],
        callback=callback,
        params=parameters_of(command),
        help=command.about,
    )


def parameters_of(command: Command) -> list[click.Parameter]:
    """Arguments and options of a row."""
    found: list[click.Parameter] = []
    for name in command.arguments():
        collection = collection_of(command.path, name)
        found.append(names.argument(collection, f"p_{name}", names.metavar(collection)))
    arguments = [field for field in command.fields if field.argument]
    others = [field for field in command.fields if not field.argument]
    found += [names.parameter(field) for field in [*arguments, *others]]
    if command.in_cluster:
        found.append(options.cluster())
    if command.shape is Shape.PAGES:
        found.append(options.limit(command.items_max))
    if command.shape is Shape.OPERATION:
        found += options.waiting()
    if command.shape is Shape.FILE:
        found.append(options.file())
    if command.confirm is not Confirm.NO:
        found.append(options.yes())
    return [*found, *options.common()]


def collection_of(path: str, name: str) -> str:
    """The list that a path's parameter is in: `/clusters/{cluster_id}/topics` of a topic."""
    return path.partition(f"/{{{name}}}")[0]


@dataclass(slots=True)
class Run:
    """One run of a command."""

    command: Command
    session: Session
    given: dict[str, Any]

    def go(self) -> None:
        """Sends the request and prints its answer."""
        command, session = self.command, self.session
        self._ask_for_secrets()
        self._resolve_references()
        try:
            query = query_of(command.fields, self.given)
            body = body_of(command.fields, self.given)
        except ValueError as error:
            raise CommandError(str(error)) from error
        if command.method == "PATCH" and not body:
            raise CommandError(
                "Nothing is to be changed.",
                advice=f"`freshet {command.words} --help` lists what can be.",
            )
        path, named = self._resolve_path(query)
        match command.shape:
            case Shape.PAGES:
                items, cursor = session.client.pages(path, query, items_max=self.given["limit"])
                answers.print_page(session, items, cursor, command.columns)
            case Shape.FILE:
                file = self.given["file"] or command.file.replace("*", named)
                answers.save(session, path, query, file)
            case _:
                answer = session.client.call(command.method, path, query=query, body=body or None)
                self._print(answer)

    def _print(self, answer: Answer) -> None:
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
                    wait=self.given["wait"],
                    timeout_s=self.given["timeout"],
                )
            case _:
                answers.print_object(self.session, answer.json())

    def _ask_for_secrets(self) -> None:
        for field in self.command.fields:
            if field.kind is Kind.SECRET and field.required and not self.given.get(field.key):
                what = field.flag_name.replace("-", " ").capitalize()
                self.given[field.key] = click.prompt(what, hide_input=True, err=True)

    def _resolve_references(self) -> None:
        for field in self.command.fields:
            text = self.given.get(field.key)
            if field.kind is Kind.REFERENCE and text:
                self.given[field.key] = names.resolve(self.session, field.collection, text)

    def _resolve_path(self, query: dict[str, Any]) -> tuple[str, str]:
        """The path with ids in it, and the name of the last of them. Asks whether it is meant."""
        path, named, cluster_id = self.command.path, "", ""
        if self.command.in_cluster:
            cluster_id = names.cluster_id(self.session, self.given["cluster"])
        for name in self.command.arguments():
            collection = collection_of(self.command.path, name)
            named = found = self.given[f"p_{name}"]
            if self.command.confirm is Confirm.NAME:
                item = names.find(self.session, collection, named, cluster_id=cluster_id)
                found, named = item["id"], item["name"]
                query["name"] = named
            else:
                found = names.resolve(
                    self.session, collection, named, cluster_id=cluster_id, over=self.command.over
                )
            path = path.replace(f"{{{name}}}", segment(found))
        self._confirm(named)
        return path.replace("{cluster_id}", segment(cluster_id)), named

    def _confirm(self, named: str) -> None:
        """Asks, where --yes is not given. Raises CommandError unless it is meant."""
        if self.command.confirm is Confirm.NO or self.given["yes"]:
            return
        what = f"{self.command.words} {named}".strip()
        if not sys.stdin.isatty():
            raise CommandError(f"`freshet {what}` cannot ask here.", advice="--yes means it.")
        if self.command.confirm is Confirm.NAME:
            meant = click.prompt(f"{what}: type its name to go on", err=True) == named
        else:
            meant = click.confirm(f"{what}?", err=True)
        if not meant:
            raise CommandError("Nothing was done.")
