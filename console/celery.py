"""The Celery application: `celery -A console worker`, `celery -A console beat`."""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

app = Celery("freshet")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def keep_logging(**_: object) -> None:
    """Leaves logging as Django's settings made it: Celery would replace it."""
