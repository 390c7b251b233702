"""The fork server: `python -m provisioning.kafka.worker`.

It forks a worker for each socket that it receives over its standard input. It has loaded what a
worker needs and started no thread, so that a fork is quick and safe. It ends when the process that
started it closes the input; its workers end by their own sockets.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
import traceback
from pathlib import Path

from provisioning.kafka.worker.serving import serve_calls

# The memory limit of a worker. The producer of a compressed record decides how large it becomes.
# The largest page takes half of this.
MEMORY_BYTES_MAX = 1024 * 1024 * 1024


def main() -> int:
    """Runs until the other end of standard input is closed."""
    # A Ctrl-C in the terminal is meant for the process that started this one, which ends it in
    # order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Exit statuses of workers are not needed: the caller sees a worker's end on its socket.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The garbage collector then leaves the objects of now alone, so their memory stays shared.
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as control:
        # Workers must not inherit the input: by it the process that started this one sees whether
        # the fork server still runs.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        while True:
            message, handles, *_ = socket.recv_fds(control, 1, 1)
            if not message:
                return 0
            for handle in handles:
                with socket.socket(fileno=handle) as connection:
                    if os.fork() == 0:
                        control.close()
                        _run_worker(connection)


def _run_worker(connection: socket.socket) -> None:
    """Runs a worker until it exits. It does not wait for the threads of its Kafka clients."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _limit_process()
        serve_calls(connection)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _limit_process() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The limit is of writable memory, because libraries reserve much more address space than they
    # use.
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    # Where the machine runs out of memory, the kernel shall end this process and not its parent.
    Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main())
