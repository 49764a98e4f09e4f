"""Releases of parties without a server that all trust."""
