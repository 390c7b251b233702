"""What one run of the command line knows: the profile, the client, and how to print."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import click

from console.programs.cli import output
from console.programs.cli.client import Client
from console.programs.cli.config import (
    DEFAULT_PROFILE,
    Config,
    Profile,
    config_path,
    read_config,
    write_config,
)
from console.programs.cli.errors import NOT_ALLOWED, CommandError
from console.programs.cli.transport import HttpTransport, Transport, parse_url

JSON = "json"
TABLE = "table"
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass
class Session:
    """One run. Flags win over the environment, and that over the profile."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    make_transport: Callable[[str], Transport] = HttpTransport
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    # Of flags.
    profile_name: str = ""
    output: str = ""

    @cached_property
    def config_file(self) -> Path:
        """Where profiles are kept."""
        return config_path(self.environment)

    @cached_property
    def config(self) -> Config:
        """All profiles, as they were when the run began."""
        return read_config(self.config_file)

    @property
    def current(self) -> str:
        """The name of the profile in use."""
        return self.profile_name or self.environment.get("FRESHET_PROFILE") or self.config.current

    @property
    def profile(self) -> Profile:
        """The profile in use; an empty one where there is none of that name."""
        known = self.config.profiles.get(self.current)
        if known is None and self.current != DEFAULT_PROFILE:
            names = ", ".join(self.config.profiles) or "none"
            raise CommandError(f"There is no profile {self.current!r}, only: {names}.")
        return known or Profile()

    @property
    def url(self) -> str:
        """The service's address. FRESHET_ENDPOINT is the Terraform provider's name of it."""
        given = self.environment.get("FRESHET_URL") or self.environment.get("FRESHET_ENDPOINT")
        return (given or self.profile.url).rstrip("/")

    @property
    def key(self) -> str:
        """The API key."""
        return self.environment.get("FRESHET_API_KEY") or self.profile.api_key

    @cached_property
    def client(self) -> Client:
        """Speaks with the key. Raises CommandError without one."""
        if not self.key:
            raise CommandError(
                "You are not signed in.",
                advice="Sign in with `freshet login`, or set FRESHET_API_KEY.",
                code=NOT_ALLOWED,
            )
        return self.client_of(self.url, self.key)

    def client_of(self, url: str, key: str = "") -> Client:
        """Speaks to an address."""
        return Client(
            self.make_transport(url), key, parse_url(url).path.rstrip("/"), pause=self.pause
        )

    @property
    def as_json(self) -> bool:
        """Whether a program reads what is printed."""
        return (self.output or self.environment.get("FRESHET_OUTPUT", TABLE)) == JSON

    def keep(self, changed: Config) -> None:
        """Writes the profiles."""
        write_config(self.config_file, changed)
        self.__dict__["config"] = changed

    def close(self) -> None:
        """Lets go of connections."""
        if "client" in self.__dict__:
            self.client.transport.close()

    def print_json(self, value: object, *, indent: int | None = 2) -> None:
        """Prints the API's object."""
        output.write(output.to_json(value, indent=indent))

    def print_lines(self, lines: list[str]) -> None:
        """Prints lines of a table."""
        for line in lines:
            output.write(line)

    def note(self, text: str) -> None:
        """Says something to a person: on the standard error, and not where a program reads."""
        if not self.as_json:
            output.note(text)

    @staticmethod
    def write_bytes(content: bytes) -> None:
        """Prints bytes as they are."""
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


pass_session = click.make_pass_decorator(Session)
