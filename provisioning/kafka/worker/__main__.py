"""`python -m provisioning.kafka.worker`: forks a worker for each socket that arrives at its input.

It has loaded what a worker needs and started no thread, so that a fork is quick and safe. It ends
with whoever started it; its workers end by their own sockets.
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

from provisioning.kafka.worker.serving import serve

# What a record unfolds to in memory is its producer's choice. The largest page takes half of it.
MEMORY_BYTES_MAX = 1024 * 1024 * 1024


def main() -> int:
    """Runs until the other end of standard input is closed."""
    # A console's Ctrl-C is for whoever started this, who ends it in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nobody asks how a worker ended: its socket tells.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What there is by now stays shared with all workers.
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as control:
        # Workers shall not hold the input: whoever started this sees by it whether it is there.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        while True:
            message, handles, *_ = socket.recv_fds(control, 1, 1)
            if not message:
                return 0
            for handle in handles:
                with socket.socket(fileno=handle) as connection:
                    if os.fork() == 0:
                        control.close()
                        _work(connection)


def _work(connection: socket.socket) -> None:
    """A worker's life. It never returns, nor does it wait for its clients' threads."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _bound_process()
        serve(connection)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _bound_process() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Of what it may write to: libraries reserve much more than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    # Where memory runs out nevertheless, the kernel shall end this process and not its parent.
    Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main())
