"""Protocols of parties without a server that all trust, run in one process."""
