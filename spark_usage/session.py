"""Opens the Spark session of a job: with the same results everywhere, and small on one machine.

Settings that change results (ANSI arithmetic, UTC) are the same for every master. Settings of place
and size (master, memory, host) are set only where the job starts Spark itself; under `spark-submit`
the cluster decides them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import TimeoutExpired

from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
DRIVER_MEMORY = "2g"

# How long a JVM may take to run its shutdown hooks before it is killed.
_STOP_SECONDS = 10

_ALWAYS = {
    # An overflow or an impossible cast ends the job, it does not become a null.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # The number of shuffle partitions is a function of the manifest (`spark_usage.jobs.runner`).
    "spark.sql.adaptive.enabled": "false",
    # Usage files are small and many: tasks get several of them, by their size.
    "spark.sql.files.openCostInBytes": "65536",
    # The driver lists files itself: a Spark job for it would take longer.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # A file that cannot be read is found and named, never passed over.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.showConsoleProgress": "false",
}


def open_session(
    name: str,
    *,
    master: str | None = None,
    driver_memory: str = DRIVER_MEMORY,
    java_options: str = "",
    jars: str = "",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of a job. `driver_memory` is in Spark's notation, such as `2g`.

    Without a `master` it is that of `spark-submit`, else `local[*]`. `jars` is a folder of further
    jars; it is ignored under `spark-submit`, which has an option for them. `settings` are further
    Spark settings; those of `_ALWAYS` win.
    """
    builder = SparkSession.builder.appName(name)
    all_settings = {**(settings or {}), **_ALWAYS}
    if not _is_submitted():
        all_settings |= _local_settings(master or LOCAL_MASTER, driver_memory, java_options)
        if jars:
            all_settings |= _jar_settings(Path(jars), all_settings["spark.master"])
    elif master is not None:
        all_settings["spark.master"] = master
    for key, value in all_settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def abandon_session(spark: SparkSession) -> None:
    """Ends the JVM of a session whose call was interrupted, since it answers no further calls.

    The JVM ends by itself, running its shutdown hooks, once its standard input is closed. Under
    `spark-submit` the JVM is the parent, and ends with this process.
    """
    gateway = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except TimeoutExpired:
        process.kill()
        process.wait()


def _is_submitted() -> bool:
    # By this variable spark-submit passes the JVM's port to its Python child.
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _jar_settings(folder: Path, master: str) -> dict[str, str]:
    settings = {"spark.driver.extraClassPath": f"{folder}/*"}
    if not master.startswith("local"):
        # The driver serves them to the executors, whose machines need nothing but Spark.
        shipped = ",".join(jar.absolute().as_uri() for jar in sorted(folder.glob("*.jar")))
        settings["spark.jars"] = shipped
    return settings


def _local_settings(master: str, driver_memory: str, java_options: str) -> dict[str, str]:
    quiet = (Path(__file__).parent / "log4j2.properties").as_uri()
    settings = {
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet} {java_options}",
        "spark.ui.enabled": "false",
    }
    if master.startswith("local"):
        # By loopback only: the machine's name need not resolve, and no other machine can connect.
        settings |= {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}
    return settings
