"""`python -m brokers serve`, `run`, `gateway`, `inspect` and `probe`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from brokers.config import load_settings
from brokers.errors import BrokerError
from brokers.settings.options import add_set_option

EXIT_USAGE = 2


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(prog="python -m brokers", description=__doc__)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="run a broker until SIGTERM or SIGINT")
    run = commands.add_parser("run", help="as serve, and start it again when it ends: for PID 1")
    gateway = commands.add_parser("gateway", help="run a gateway until SIGTERM or SIGINT")
    inspect = commands.add_parser("inspect", help="show what lies on a cluster's storage")
    for command in (serve, run, gateway, inspect):
        command.add_argument("--config", required=True, metavar="FILE", help="settings, in TOML")
        add_set_option(command)
    inspect.add_argument("--verify", action="store_true", help="verify every checksum")
    inspect.add_argument("--lane", type=int, metavar="N", help="only this lane")
    inspect.add_argument(
        "--topic", metavar="T", help="only partitions of this topic, by name or id"
    )
    probe = commands.add_parser("probe", help="ask whether a folder is fit for lanes")
    probe.add_argument("folder", type=Path, metavar="FOLDER", help="of the shared file system")
    probe.add_argument("--other", type=Path, metavar="FOLDER", help="the same by a second mount")
    for command in (inspect, probe):
        command.add_argument("--json", action="store_true", help="write JSON")
    return root


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the status to exit with."""
    given = build_parser().parse_args(arguments)
    try:
        # Imported once it is clear which is needed: a broker's start is counted in milliseconds.
        if given.command == "gateway":
            from brokers import gateway  # noqa: PLC0415 (see above)

            return gateway.serve_gateway(
                load_settings(given.config, given.set, gateway.resolve_settings)
            )
        if given.command == "run":
            from brokers.run import run_broker  # noqa: PLC0415 (see above)

            return run_broker(
                ["--config", given.config, *(f"--set={override}" for override in given.set)]
            )
        if given.command == "probe":
            from brokers.probe.report import show_probe  # noqa: PLC0415 (see above)

            return show_probe(given.folder, given.other, as_json=given.json)
        settings = load_settings(given.config, given.set)
        if given.command == "serve":
            from brokers.server import serve_broker  # noqa: PLC0415 (see above)

            return serve_broker(settings)
        from brokers.inspection import inspect_storage  # noqa: PLC0415 (see above)

        return inspect_storage(
            settings,
            verify=given.verify,
            lane=given.lane,
            topic=given.topic,
            as_json=given.json,
        )
    except BrokerError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE


def probe() -> int:
    """`freshet-probe`, which is `python -m brokers probe`."""
    return main(["probe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
