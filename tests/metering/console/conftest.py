"""Tenants and clients, as the console's tests have them."""

from tests.console import conftest as console

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api
