"""The option by which a command line sets settings."""

from __future__ import annotations

import argparse


def add_set_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--set`, which may be repeated."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.SETTING=VALUE",
        help="a setting that wins over the file's; may be repeated",
    )
