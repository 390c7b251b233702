"""The gateway as a process, with real clients and real brokers behind it."""
