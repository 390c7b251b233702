"""All commands, and what happens around one."""

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
    """The command line."""
    root = click.Group(
        "freshet",
        help=ABOUT,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    groups: dict[str, click.Group] = {}
    for row in ALL:
        words = row.words.split()
        built = command.build(row)
        if len(words) == 1:
            root.add_command(built)
            continue
        if words[0] not in groups:
            groups[words[0]] = click.Group(words[0], help=GROUPS[words[0]])
            root.add_command(groups[words[0]])
        groups[words[0]].add_command(built)
    groups["operation"].add_command(extra.wait_command())
    by_hand = (
        *login.commands(),
        produce.produce_command(),
        consume.consume_command(),
        lag.lag_command(),
        export.export_commands(),
        extra.completion_command(),
        extra.version_command(),
    )
    for each in by_hand:
        root.add_command(each)
    return root


def run(arguments: list[str] | None = None, session: Session | None = None) -> int:
    """Runs a command line; returns its exit code."""
    session = session or Session()
    try:
        build_root().main(arguments, prog_name="freshet", standalone_mode=False, obj=session)
    except CommandError as error:
        return fail(error.lines(), error.code)
    except click.ClickException as error:
        return _misused(error)
    except (KeyboardInterrupt, click.Abort):
        answers.flush()
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_is_gone()
    except SystemExit as done:  # a shell was told what it can complete
        return int(done.code or 0)
    finally:
        session.close()
    return 0


def _misused(error: click.ClickException) -> int:
    """Says what is wrong with the command line; of a group without a command what it has."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return USAGE
    error.show()
    return error.exit_code


def fail(lines: list[str], code: int) -> int:
    """Says what went wrong, on the standard error."""
    answers.flush()
    for number, line in enumerate(lines):
        output.note(f"freshet: {output.safe(line)}" if number == 0 else output.safe(line))
    return code


def _reader_is_gone() -> int:
    """Such as `head`, which had enough: Python must not complain about it at its end."""
    sys.stdout = open("/dev/null", "w")  # noqa: PTH123, SIM115 - until the process ends
    return 0
