"""`make kube-demo`: runs Freshet on a real Kubernetes of this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.kubernetes.client import Client
from tests.kubernetes.demo.forward import Forwarder
from tests.kubernetes.demo.installed import Installed
from tests.kubernetes.demo.stores import Stores
from tests.kubernetes.demo.walk import walk
from tests.kubernetes.image.build import build
from tests.kubernetes.pods.cluster import RunningCluster
from tests.kubernetes.pods.needs import missing
from tests.peer.processes import bound_command

HTTP_PORT, KAFKA_PORT = 8080, 9092
WEB, GATEWAY = 8080, 9443
EXIT_LACKING = 3
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Say = Callable[[str], None]


def main() -> int:
    """Runs the demonstration.

    Returns the exit status, which is 3 where the machine lacks something.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="end after the first walk")
    parser.add_argument("--spark", action="store_true", help="with Java, for the nightly roll-up")
    given = parser.parse_args()
    lacks = missing()
    if lacks:
        sys.stderr.write("Real pods need what this machine lacks:\n")
        sys.stderr.writelines(f"  - {lack}\n" for lack in lacks)
        return EXIT_LACKING
    if os.getsid(0) != os.getpid():
        return in_a_session()
    for number in STOP_SIGNALS:
        signal.signal(number, interrupt)
    began = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {line}\n")
        sys.stdout.flush()

    with contextlib.suppress(KeyboardInterrupt):
        demonstrate(say, once=given.once, spark=given.spark)
    say("all of it is gone")
    return 0


def in_a_session() -> int:
    """Runs this program again in a session of its own.

    A Ctrl-C would reach all processes of the terminal. Here one of them must end the others in
    order.
    """
    command = [sys.executable, "-m", "tests.kubernetes.demo", *sys.argv[1:]]
    child = subprocess.Popen(bound_command(command), start_new_session=True)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: child.terminate())
    return child.wait()


def interrupt(*_: object) -> None:
    """Interrupts the demonstration once; what is being taken down then is not interrupted."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def demonstrate(say: Say, *, once: bool, spark: bool) -> None:
    """Builds, installs and walks, waits where that is asked for, and takes all down again."""
    image = build(spark=spark)
    say(f"image {image.name}")
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="freshet-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # Pods and PostgreSQL run as other users, which must reach the folder; secrets in it are
        # private.
        folder.chmod(0o755)
        cluster = stack.enter_context(RunningCluster(image.archive))
        say("a Kubernetes with one node")
        address = cluster.network.outside
        stack.enter_context(Stores(folder, address))
        say("PostgreSQL, Redis, etcd and S3")
        admin = Client(cluster.kubeconfig)
        stack.callback(admin.close)
        port = cluster.control_plane.port
        installed = Installed(folder, admin, address=address, api_port=port)
        installed.install(image.name)
        installed.await_ready(say)
        forwarder = Forwarder()
        stack.callback(forwarder.close)
        forwarder.listen(HTTP_PORT, lambda: installed.addresses("web", WEB))
        forwarder.listen(KAFKA_PORT, lambda: installed.addresses("gateway", GATEWAY))
        authority = installed.authority.certificate("ca")
        try:
            walked = walk(f"http://localhost:{HTTP_PORT}", authority, folder, say)
        except Exception as error:
            say(f"failed: {error}\n{installed.explain()}")
            raise
        if once:
            return
        say(f"console: http://localhost:{HTTP_PORT}")
        say(f"Kafka: {walked.bootstrap} (TLS, authority {authority})")
        say(f"       {walked.username} / {walked.password}")
        say(f"kubectl: KUBECONFIG={cluster.kubeconfig}")
        say("Ctrl-C ends all of it")
        threading.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
