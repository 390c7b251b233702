"""Small commands that are no row of a table: operation wait, completion, version."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version

import click
from click.shell_completion import get_completion_class

from console.programs.cli import answers, names, options, output
from console.programs.cli.client import segment
from console.programs.cli.errors import CommandError
from console.programs.cli.session import Session, pass_session

SHELLS = ("bash", "zsh", "fish")
# The variable with which click's scripts call this program for completions.
COMPLETE = "_FRESHET_COMPLETE"


@pass_session
def wait_for_operation(session: Session, operation: str, timeout: int) -> None:
    """Wait until an operation has ended. Fails where the operation failed."""
    current = session.client.get(f"/operations/{segment(operation)}")
    answers.print_operation(session, current, wait=True, timeout_s=timeout)


def wait_command() -> click.Command:
    """Returns `freshet operation wait`."""
    argument = names.build_argument("/operations", "operation", "OPERATION")
    parameters = [argument, options.timeout_option(), *options.common_options()]
    return click.Command(
        "wait", callback=wait_for_operation, params=parameters, help=wait_for_operation.__doc__
    )


def print_completion(shell: str | None) -> None:
    """Print a script with which a shell completes commands and names.

    bash: source <(freshet completion bash); zsh: the same in .zshrc; fish: freshet completion fish
    > ~/.config/fish/completions/freshet.fish
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    completion_class = get_completion_class(name) if name in SHELLS else None
    if completion_class is None:
        raise CommandError("Which shell?", advice=f"Name one of {', '.join(SHELLS)}.")
    root = click.get_current_context().find_root().command
    # click's own way starts a process to ask for the shell's version, which is not needed.
    script = completion_class(root, {}, "freshet", COMPLETE)
    output.print_line(script.source_template % script.source_vars())


def completion_command() -> click.Command:
    """Returns `freshet completion`."""
    shell = click.Argument(["shell"], type=click.Choice(SHELLS), required=False)
    return click.Command(
        "completion", callback=print_completion, params=[shell], help=print_completion.__doc__
    )


def show_version() -> None:
    """Print the version of this command line."""
    try:
        release = version("freshet")
    except PackageNotFoundError:
        release = "of a checkout"
    sys.stdout.write(f"freshet {release}\n")


def version_command() -> click.Command:
    """Returns `freshet version`."""
    return click.Command("version", callback=show_version, help=show_version.__doc__)
