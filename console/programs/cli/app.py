"""Builds the command line from all commands, runs it, and turns errors into exit codes."""

from __future__ import annotations

import sys

import click

from console.programs.cli import (
    answers,
    command,
    consume,
    export,
    extra,
    lag,
    login,
    output,
    produce,
)
from console.programs.cli.errors import INTERRUPTED, USAGE, CommandError
from console.programs.cli.session import Session
from console.programs.cli.tables import ALL, GROUPS

ABOUT = """Kafka clusters and all that is in them, by Freshet's REST interface.

Begin with `freshet login`; `freshet COMMAND --help` says what a command takes. Where a NAME is
asked for, an id will do.
"""


def build_root() -> click.Group:
    """Returns the command line with all of its commands."""
    root = click.Group(
        "freshet",
        help=ABOUT,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    groups: dict[str, click.Group] = {}
    for row in ALL:
        words = row.words.split()
        built = command.build_command(row)
        if len(words) == 1:
            root.add_command(built)
            continue
        if words[0] not in groups:
            groups[words[0]] = click.Group(words[0], help=GROUPS[words[0]])
            root.add_command(groups[words[0]])
        groups[words[0]].add_command(built)
    groups["operation"].add_command(extra.wait_command())
    written_commands = (
        *login.login_commands(),
        produce.produce_command(),
        consume.consume_command(),
        lag.lag_command(),
        export.export_commands(),
        extra.completion_command(),
        extra.version_command(),
    )
    for written_command in written_commands:
        root.add_command(written_command)
    return root


def run_command_line(arguments: list[str] | None = None, session: Session | None = None) -> int:
    """Runs a command line; returns its exit code.

    `arguments`: None for those of the process. `session`: None for a new one.
    """
    session = session or Session()
    try:
        build_root().main(arguments, prog_name="freshet", standalone_mode=False, obj=session)
    except CommandError as error:
        return print_failure(error.lines(), error.code)
    except click.ClickException as error:
        return _print_misuse(error)
    except (KeyboardInterrupt, click.Abort):
        answers.flush_output()
        return INTERRUPTED
    except BrokenPipeError:
        return _discard_output()
    except SystemExit as done:  # the shell asked for completions, and click has printed them
        return int(done.code or 0)
    finally:
        session.close()
    return 0


def _print_misuse(error: click.ClickException) -> int:
    """Prints what is wrong with the command line; for a group without a command, its help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return USAGE
    error.show()
    return error.exit_code


def print_failure(lines: list[str], code: int) -> int:
    """Prints what went wrong to the standard error; returns `code`."""
    answers.flush_output()
    for number, line in enumerate(lines):
        output.print_note(
            f"freshet: {output.escape_controls(line)}"
            if number == 0
            else output.escape_controls(line)
        )
    return code


def _discard_output() -> int:
    """Replaces the standard output after its reader (such as `head`) went away; returns 0.

    Otherwise Python prints an error when it flushes the standard output at exit.
    """
    sys.stdout = open("/dev/null", "w")  # noqa: PTH123, SIM115 - until the process ends
    return 0
