"""The descriptions of unary encoding and of RAPPOR."""

from hockeystick.mechanisms import Encoding, UnaryEncoding


def test_the_encoding_is_symmetric_unless_said_otherwise() -> None:
    assert UnaryEncoding(1) == UnaryEncoding(1.0, "symmetric")
    assert UnaryEncoding(1, "optimized").kind is Encoding.OPTIMIZED
