"""Django's settings for the tests: local mode in a folder of this session, cheap passwords.

The database's host and name are known once `tests/conftest.py` has started PostgreSQL.
"""

import atexit
import shutil
import tempfile
from pathlib import Path

from console.settings.assemble import django_settings
from console.settings.config import build_config

HOME = Path(tempfile.mkdtemp(prefix="freshet-tests-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

globals().update(django_settings(build_config(HOME, {"queue": {"counters_url": "memory://"}}, {})))
PASSWORD_HASHERS = ["tests.console.hashers.QuickHasher"]
CELERY_BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {}
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
