"""What all jobs share: arguments, signals, the session, and the exit status.

Exit status: 0 done, 1 failed, 2 refused (arguments, manifest, an output folder that exists),
128 + n ended by signal n.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import date
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from spark_usage.errors import Interrupted, JobError
from spark_usage.progress import Progress
from spark_usage.run_manifest import RunManifest, parse_run
from spark_usage.session import DRIVER_MEMORY, abandon_session, open_session
from spark_usage.storage import Storage

DONE, FAILED, REFUSED = 0, 1, 2

# A task of a driver with the default memory deduplicates this many rows without spilling.
ROWS_PER_PARTITION = 250_000

# Up to so many rows it costs more to compile a run's code well than well compiled code saves:
# `tests.bench.rollup` measures both.
FEW_ROWS = 3_000_000
COMPILE_LITTLE = "-XX:TieredStopAtLevel=1"

# The variable with settings of Spark as a JSON object.
SETTINGS_VARIABLE = "SPARK_USAGE_SETTINGS"

Job = Callable[[SparkSession, argparse.Namespace, Progress], object]


def arguments_of(name: str, description: str) -> argparse.ArgumentParser:
    """The arguments that all jobs have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m spark_usage.jobs.{name}", description=description
    )
    parser.add_argument("--day", type=date.fromisoformat, required=True, help="YYYY-MM-DD, UTC")
    parser.add_argument("--run-id", required=True, help="as in the manifest")
    parser.add_argument("--manifest", required=True, help="path or URI of the run's JSON")
    parser.add_argument("--output", required=True, help="path or URI of a folder to be made")
    parser.add_argument("--master", help="default: that of spark-submit, and local[*] without one")
    parser.add_argument("--driver-memory", default=DRIVER_MEMORY, help="default: %(default)s")
    parser.add_argument(
        "--rows", type=int, help="of all inputs, if known: a run of few rows compiles little"
    )
    parser.add_argument("--jars", default="", help="folder of further jars, as for s3a://")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.hadoop.fs.s3a.endpoint; may be given again",
    )
    return parser


def main(name: str, job: Job, stages: int, arguments: argparse.Namespace) -> int:
    """Runs a job in a session of its own; returns the exit status."""
    spark = None
    _on_signals(_raise_interrupted)
    try:
        spark = open_session(
            f"freshet-{name}",
            master=arguments.master,
            driver_memory=arguments.driver_memory,
            java_options=java_options_for(arguments.rows),
            jars=arguments.jars,
            settings=_settings_of(arguments.conf),
        )
        # Again, because PySpark sets a handler of its own for SIGINT when it starts.
        _on_signals(_raise_interrupted)
        job(spark, arguments, Progress(spark.sparkContext, stages))
    except JobError as error:
        sys.stderr.write(f"{name}: {error}\n")
        status = REFUSED
    except KeyboardInterrupt as error:
        _on_signals(signal.SIG_IGN)
        sys.stderr.write(f"{name}: {error}; nothing of this run counts\n")
        if spark is not None:
            abandon_session(spark)
        return 128 + (error.signal_number if isinstance(error, Interrupted) else signal.SIGINT)
    except Exception:
        sys.stderr.write(f"{name}: failed\n{traceback.format_exc()}")
        status = FAILED
    else:
        status = DONE
    if spark is not None:
        spark.stop()
    return status


def java_options_for(rows: int | None) -> str:
    """The options of the JVM of a run over so many rows; None where nobody knows how many."""
    return COMPILE_LITTLE if rows is not None and rows <= FEW_ROWS else ""


def _settings_of(options: Sequence[str]) -> dict[str, str]:
    """Spark's settings: those of the command line, and those of the environment, which hold secrets
    that no list of processes must show."""
    secret: dict[str, str] = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
    return secret | dict(option.split("=", 1) for option in options)


def load_run(storage: Storage, arguments: argparse.Namespace) -> RunManifest:
    """The run manifest that the arguments name. Raises `JobError`."""
    return parse_run(storage.read(arguments.manifest), run_id=arguments.run_id, day=arguments.day)


def size_shuffles(spark: SparkSession, run: RunManifest) -> None:
    """Sets the number of shuffle partitions so that each fits into memory.

    It is a function of the manifest's rows, and at least the number of cores.
    """
    rows = sum(file.rows for file in run.inputs)
    partitions = max(spark.sparkContext.defaultParallelism, -(-rows // ROWS_PER_PARTITION))
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def finish_run(storage: Storage, output: str, report: dict[str, Any]) -> None:
    """Writes `report.json`, then `_SUCCESS.json`: a folder without the second does not count."""
    data = json.dumps(report, indent=1).encode()
    storage.write(f"{output}/report.json", data)
    success = {
        "version": report["version"],
        "run_id": report["run_id"],
        "report_sha256": hashlib.sha256(data).hexdigest(),
    }
    storage.write(f"{output}/_SUCCESS.json", json.dumps(success).encode())


def _on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _raise_interrupted(number: int, frame: FrameType | None) -> None:
    # Py4J logs every call that does not return, and the interrupted one will not.
    logging.disable(logging.CRITICAL)
    raise Interrupted(number)


def parse_arguments(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> argparse.Namespace:
    """The parsed arguments; a trailing slash of the output folder is removed."""
    arguments = parser.parse_args(argv)
    arguments.output = arguments.output.rstrip("/")
    for setting in arguments.conf:
        if "=" not in setting:
            parser.error(f"--conf {setting}: NAME=VALUE is expected")
    return arguments
