"""What `celery --app console.programs.outbound.worker worker --queues outbound` loads."""

from __future__ import annotations

from console.programs.outbound.application import connect_signals, make_application
from console.settings.outbound import load_outbound_config

_config = load_outbound_config()
connect_signals(_config)
app = make_application(_config)
