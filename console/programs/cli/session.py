"""The session of one run of the command line: its profile, its client, and how it prints."""

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
    CliConfig,
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
    """One run. Options win over the environment, and the environment over the profile."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    make_transport: Callable[[str], Transport] = HttpTransport
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    # Set by the options --profile and --output; empty where they are not given.
    profile_name: str = ""
    output: str = ""

    @cached_property
    def config_file(self) -> Path:
        """The file of profiles."""
        return config_path(self.environment)

    @cached_property
    def config(self) -> CliConfig:
        """All profiles, as they were when the run began."""
        return read_config(self.config_file)

    @property
    def current(self) -> str:
        """The name of the profile in use."""
        return self.profile_name or self.environment.get("FRESHET_PROFILE") or self.config.current

    @property
    def profile(self) -> Profile:
        """The profile in use; an empty one where there is no profile at all.

        Raises `CommandError` where a profile was named that does not exist.
        """
        known = self.config.profiles.get(self.current)
        if known is None and self.current != DEFAULT_PROFILE:
            names = ", ".join(self.config.profiles) or "none"
            raise CommandError(f"There is no profile {self.current!r}. The profiles are: {names}.")
        return known or Profile()

    @property
    def url(self) -> str:
        """The service's address. FRESHET_ENDPOINT is the variable of the Terraform provider."""
        address = self.environment.get("FRESHET_URL") or self.environment.get("FRESHET_ENDPOINT")
        return (address or self.profile.url).rstrip("/")

    @property
    def key(self) -> str:
        """The API key; empty where there is none."""
        return self.environment.get("FRESHET_API_KEY") or self.profile.api_key

    @cached_property
    def client(self) -> Client:
        """The client with the API key. Raises `CommandError` where there is none."""
        if not self.key:
            raise CommandError(
                "You are not signed in.",
                advice="Sign in with `freshet login`, or set FRESHET_API_KEY.",
                code=NOT_ALLOWED,
            )
        return self.client_of(self.url, self.key)

    def client_of(self, url: str, key: str = "") -> Client:
        """Returns a client of the service at an address."""
        return Client(
            self.make_transport(url), key, parse_url(url).path.rstrip("/"), pause=self.pause
        )

    @property
    def as_json(self) -> bool:
        """Whether the output is JSON, for a program."""
        return (self.output or self.environment.get("FRESHET_OUTPUT", TABLE)) == JSON

    def keep_config(self, changed: CliConfig) -> None:
        """Writes the file of profiles. Raises `CommandError` where that fails."""
        write_config(self.config_file, changed)
        self.__dict__["config"] = changed

    def close(self) -> None:
        """Closes the connections."""
        if "client" in self.__dict__:
            self.client.transport.close()

    def print_json(self, value: object, *, indent: int | None = 2) -> None:
        """Prints an object of the API as JSON."""
        output.print_line(output.to_json(value, indent=indent))

    def print_lines(self, lines: list[str]) -> None:
        """Prints lines to the standard output."""
        for line in lines:
            output.print_line(line)

    def note(self, text: str) -> None:
        """Prints a message for a person to the standard error; nothing where the output is JSON."""
        if not self.as_json:
            output.print_note(text)

    @staticmethod
    def write_bytes(content: bytes) -> None:
        """Prints bytes as they are."""
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


pass_session = click.make_pass_decorator(Session)
