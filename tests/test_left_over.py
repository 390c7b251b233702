"""A test that leaves the service's settings changed fails, and the next one has them as before."""

import dataclasses

import pytest
from django.conf import settings as of_django

from console.base.common.conf import config
from tests import left_over


def test_a_test_that_leaves_settings_fails_by_their_names():
    before = config()
    limits = dataclasses.replace(before.limits, api_keys=before.limits.api_keys + 1)
    of_django.FRESHET = dataclasses.replace(before, limits=limits, mode="production")
    with pytest.raises(pytest.fail.Exception) as failure:
        left_over.check("test_x")
    message = str(failure.value)
    assert "limits.api_keys" in message
    assert "mode" in message
    assert config() == before
    left_over.check("test_x")
