"""Writes `docs/reference/command-line.md` from the commands.

`python -m console.programs.cli.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from console.programs.cli import app, options
from console.programs.cli.errors import EXIT_CODES

_HEAD = """\
# Command line

Every command of `freshet`; [use the command line](../how-to/use-the-command-line.md) shows them at
work. Where a NAME_OR_ID or an argument in capitals is asked for, a name or an id will do.

Every command also takes `--output table|json` (`-o`), `--profile NAME` (`-p`) and `--help` (`-h`).
With `json` it prints the API's own object (of a list all pages, as
`{"items": […], "next_cursor": null}`) and nothing else; `consume`, `produce` and `lag --watch`
print one object a line. Messages for people go to the standard error.

TIME is RFC 3339, `now`, ago (`-24h`) or from now on (`+30d`), in `s`, `m`, `h` or `d`. Options that
take NAME=VALUE, and those that say so, can be given again and again.

This page is made from the code: `python -m console.programs.cli.reference`.

## Environment

| Variable | What |
|---|---|
| `FRESHET_URL` | the address, before the profile's; `FRESHET_ENDPOINT`, as for Terraform, will do |
| `FRESHET_API_KEY` | the key, before the profile's |
| `FRESHET_CLUSTER` | the cluster that commands mean when they name none |
| `FRESHET_PROFILE` | the profile in use |
| `FRESHET_OUTPUT` | `table` or `json` |
| `FRESHET_CONFIG` | the file of profiles, else `freshet/config.json` in the user's configuration |

## Exit codes

| Code | When |
|---|---|
"""


def command_reference() -> str:
    """Returns the page as Markdown: a section for each group, with a table for each command."""
    root = app.build_root()
    parts = [_HEAD, *(f"| {code} | {when} |\n" for code, when in EXIT_CODES.items())]
    alone = {
        name: member
        for name, member in root.commands.items()
        if not isinstance(member, click.Group)
    }
    parts.append("\n## Commands by themselves\n")
    parts += [_command_section(name, command) for name, command in sorted(alone.items())]
    for name, group in sorted(root.commands.items()):
        if isinstance(group, click.Group):
            parts.append(f"\n## {name}\n\n{group.help}\n")
            parts += [
                _command_section(f"{name} {n}", member)
                for n, member in sorted(group.commands.items())
            ]
    return "".join(parts)


def _command_section(words: str, command: click.Command) -> str:
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    usage = " ".join(["freshet", words, *map(_argument_usage, arguments)])
    text = "\n".join(line.strip() for line in (command.help or "").splitlines())
    rows = "".join(_option_rows(command))
    table = f"\n| Option | What |\n|---|---|\n{rows}" if rows else ""
    return f"\n### `{usage}`\n\n{text.strip()}\n{table}"


def _argument_usage(argument: click.Argument) -> str:
    word = argument.metavar or str(argument.name).upper()
    return word if argument.required else f"[{word}]"


def _option_rows(command: click.Command) -> Iterator[str]:
    common = {option.name for option in options.common_options()}
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in common:
            names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
            needed = " Required." if option.required else ""
            words = ""
            if isinstance(option.type, click.Choice):
                words = f" One of {', '.join(f'`{choice}`' for choice in option.type.choices)}."
            yield f"| {names} | {option.help}{words}{needed} |\n"


if __name__ == "__main__":
    sys.stdout.write(command_reference())
