"""Plugs for training libraries; each needs its own extra, and hockeystick itself loads none."""
