"""Releases chosen as one goes: what they may cost, and what they have cost."""
