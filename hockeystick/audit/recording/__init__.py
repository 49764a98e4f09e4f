"""The self-test of a training loop: its steps done again on neighbouring data, and looked at."""

from hockeystick.audit.recording.replay import Kind, Neighbour, PlainLoop, Replay, Run, Step
from hockeystick.audit.recording.self_test import record
from hockeystick.audit.recording.violations import Rule, SelfTest, Violation

__all__ = [
    "Kind",
    "Neighbour",
    "PlainLoop",
    "Replay",
    "Rule",
    "Run",
    "SelfTest",
    "Step",
    "Violation",
    "record",
]
