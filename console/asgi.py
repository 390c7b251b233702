"""The ASGI application, which `python -m console.programs.web` serves."""

import gc
import os
import sys
from importlib import import_module

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

django.setup(set_prefix=False)

# These import models, which needs Django to be set up.
from console.base.common.answers import AnswerLimit  # noqa: E402
from console.base.common.arrivals import (  # noqa: E402
    API_BURST_S,
    PAGES_BURST_S,
    ArrivalLimit,
    Shares,
)
from console.base.common.bodies import BodyLimit  # noqa: E402
from console.base.common.conf import config  # noqa: E402
from console.base.common.metrics import serve_metrics  # noqa: E402
from console.base.common.paths import PartedHandler  # noqa: E402
from console.web.watching import Watching  # noqa: E402

limits = config().limits
application = ArrivalLimit(
    AnswerLimit(BodyLimit(Watching(PartedHandler()), settings.DATA_UPLOAD_MAX_MEMORY_SIZE)),
    api=Shares("address", limits.anonymous_requests_per_second, API_BURST_S),
    pages=Shares("pages", limits.page_requests_per_second, PAGES_BURST_S),
    # What Stripe signed counts against no limit of requests without a credential.
    uncounted=["/api/v1/webhooks/stripe"],
)

# A request that computes lets the others go on after so long (seconds); each of them asks for its
# turn again whenever PostgreSQL has answered.
sys.setswitchinterval(0.0005)

# All views are imported now and not at the first request. What is in memory by then stays for ever:
# it is frozen, so that the garbage collector does not walk it while a request waits.
import_module("console.urls")
serve_metrics(config().metrics.web, "web")
gc.collect()
gc.freeze()
# The collector waits until there is a fourth more than it found last time: without what is frozen.
gc.collect()
