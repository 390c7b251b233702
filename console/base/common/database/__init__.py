"""Django's PostgreSQL backend, with transactions that can be interrupted."""
