"""A standalone cluster of Spark: a master and workers, each a process, on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark
import urllib3

from tests.ports import free_ports
from tests.supervisor.run import wait_until

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 180
# Doubling from 0.1 s, to a minute in all.
START_RETRIES = urllib3.Retry(total=15, backoff_factor=0.1, backoff_max=5)
STOP_S = 20


@dataclass
class SparkCluster:
    """The processes of a cluster. A worker can be ended while a job runs, and another one added."""

    folder: Path
    port: int
    web_port: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The master, as the setting `usage.spark_master` names it."""
        return f"spark://127.0.0.1:{self.port}"

    def start_master(self) -> None:
        """Starts the master."""
        options = ["--port", str(self.port), "--webui-port", str(self.web_port)]
        self._start("master", "org.apache.spark.deploy.master.Master", *options)

    def start_worker(self, name: str, *, cores: int = 1, memory: str = "1g") -> None:
        """Starts a worker, and waits until the master knows it."""
        before = self.workers()
        options = ["--cores", str(cores), "--memory", memory, "--webui-port", "0"]
        options += ["--work-dir", str(self.folder / name)]
        self._start(name, "org.apache.spark.deploy.worker.Worker", *options, self.url)
        wait_until(lambda: self.workers() > before, f"{name} is up: see {self.folder}", START_S)

    def kill(self, name: str) -> None:
        """Kills a process, with the executors that a worker started."""
        process = self.processes.pop(name)
        executors = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for executor in executors:
            with suppress(psutil.NoSuchProcess):
                executor.kill()

    def workers(self) -> int:
        """How many workers are alive, as the master says."""
        page = f"http://127.0.0.1:{self.web_port}/json/"
        answer = urllib3.request("GET", page, retries=START_RETRIES)
        workers = json.loads(answer.data)["workers"]
        return sum(worker["state"] == "ALIVE" for worker in workers)

    def stop(self) -> None:
        """Ends all processes."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(STOP_S)

    def _start(self, name: str, kind: str, *options: str) -> None:
        log = (self.folder / f"{name}.log").open("wb")
        with log:
            self.processes[name] = subprocess.Popen(
                [CLASS, kind, "--host", "127.0.0.1", *options],
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A master and workers named `worker-1` and so on, with a core and 1 GiB each."""
    port, web_port = free_ports(2)
    cluster = SparkCluster(folder, port, web_port)
    try:
        cluster.start_master()
        for number in range(workers):
            cluster.start_worker(f"worker-{number + 1}")
        yield cluster
    finally:
        cluster.stop()
