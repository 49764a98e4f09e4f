"""What an attack or a replay finds of a private program, against what was proven of it."""

from hockeystick.audit.recording import PlainLoop, Replay, Rule, SelfTest, Violation, record

__all__ = ["PlainLoop", "Replay", "Rule", "SelfTest", "Violation", "record"]
