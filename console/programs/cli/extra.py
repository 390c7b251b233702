"""Commands that are no row of a table, but small."""

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
# What click's scripts call back with.
COMPLETE = "_FRESHET_COMPLETE"


@pass_session
def wait(session: Session, operation: str, timeout: int) -> None:
    """Wait until an operation is done; fails if it does."""
    found = session.client.get(f"/operations/{segment(operation)}")
    answers.print_operation(session, found, wait=True, timeout_s=timeout)


def wait_command() -> click.Command:
    """`freshet operation wait`."""
    argument = names.argument("/operations", "operation", "OPERATION")
    parameters = [argument, options.timeout(), *options.common()]
    return click.Command("wait", callback=wait, params=parameters, help=wait.__doc__)


def completion(shell: str | None) -> None:
    """Print what makes a shell complete commands, names of clusters, topics and groups.

    bash: source <(freshet completion bash); zsh: the same in .zshrc; fish: freshet completion fish
    > ~/.config/fish/completions/freshet.fish
    """
    wanted = shell or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    made = get_completion_class(wanted) if wanted in SHELLS else None
    if made is None:
        raise CommandError("Which shell?", advice=f"One of {', '.join(SHELLS)}.")
    root = click.get_current_context().find_root().command
    # Without asking for the shell's version, which click's own way starts a process for.
    script = made(root, {}, "freshet", COMPLETE)
    output.write(script.source_template % script.source_vars())


def completion_command() -> click.Command:
    """`freshet completion`."""
    shell = click.Argument(["shell"], type=click.Choice(SHELLS), required=False)
    return click.Command("completion", callback=completion, params=[shell], help=completion.__doc__)


def show_version() -> None:
    """Print the version of this command line."""
    try:
        found = version("freshet")
    except PackageNotFoundError:
        found = "of a checkout"
    sys.stdout.write(f"freshet {found}\n")


def version_command() -> click.Command:
    """`freshet version`."""
    return click.Command("version", callback=show_version, help=show_version.__doc__)
