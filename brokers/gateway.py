"""One gateway as a process: started, and stopped on request.

Everything that waits is in the extension. Unlike a broker it needs no watching: a gateway does not
end by itself, but waits for whatever it cannot reach.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from brokers import _core
from brokers.errors import BrokerError

__all__ = ["resolve_settings", "serve_gateway"]

EXIT_STOPPED = 0
EXIT_NOT_STARTED = 1

# The gateway itself gives up earlier, by `limits.drain_timeout_ms`.
STOP_SECONDS = 60.0

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def resolve_settings(settings: str, overrides: Sequence[str]) -> str:
    """Settings (TOML) with overrides and defaults filled in. Raises `ConfigError`."""
    return _core.resolve_gateway_settings(settings, overrides)


def serve_gateway(settings: str) -> int:
    """Runs a gateway with these settings (TOML) until SIGTERM or SIGINT.

    Prints one line, `ready plain=<listeners> tls=<host:port> metrics=<host:port>`, once it serves;
    `-` stands for a listener that is off. Returns the status to exit with: 0 after a stop, 1 where
    it did not start.
    """
    # Blocked before any thread starts, so that no other thread is interrupted by them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    gateway = _core.GatewayProcess(settings)
    try:
        gateway.start()
    except BrokerError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_NOT_STARTED
    say_ready(gateway)
    signal.sigwait(STOP_SIGNALS)
    # A second request ends the process at once.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    gateway.stop(STOP_SECONDS)
    return EXIT_STOPPED


def say_ready(gateway: _core.GatewayProcess) -> None:
    """Writes the ready line for the supervisor to standard output."""
    tls, metrics = gateway.tls_address or "-", gateway.metrics_address or "-"
    line = f"ready plain={gateway.plain_listeners} tls={tls} metrics={metrics}\n"
    # A supervisor that has closed the pipe is no reason to stop serving.
    with contextlib.suppress(OSError):
        os.write(1, line.encode())
