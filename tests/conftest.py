"""Settings that all tests share: where CI is set, Hypothesis draws the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
if os.environ.get("CI"):
    settings.load_profile("repeatable")
