"""The ASGI application: `uvicorn console.asgi:application`."""

import gc
import os
from importlib import import_module

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

django.setup(set_prefix=False)

# Only what Django has set up can be imported with its applications.
from console.base.common.bodies import BodyLimit  # noqa: E402
from console.base.common.conf import config  # noqa: E402
from console.base.common.metrics import serve_metrics  # noqa: E402
from console.base.common.paths import PartedHandler  # noqa: E402

application = BodyLimit(PartedHandler(), settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

# All views now, not at the first request; and what is there stays, so that no collection looks
# through it while somebody waits.
import_module("console.urls")
serve_metrics(config().metrics.web, "web")
gc.collect()
gc.freeze()
