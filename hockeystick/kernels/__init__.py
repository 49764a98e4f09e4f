"""The numba room: jitted functions of floats and contiguous arrays, and nothing else.

Nothing here validates, raises or knows what a mechanism is; callers pass clean numbers and read
numbers back. What is integrated on lines has ``mpmath`` twins in ``hockeystick.precision``, and
everything is tested against ``mpmath``. Kernels take ``njit`` from ``compiled``, which interprets
them until loading numba pays, or ``njit_at_once``, and they import nothing of numba themselves.

A function that returns several arrays is made ``interruptible``, so that Ctrl-C in the middle of it
is a ``KeyboardInterrupt`` as everywhere else.

Round-off is accounted, not assumed away: functions that return ``error`` bound the distance
between what they computed and the same sum in exact arithmetic. The bounds assume IEEE 754 double
precision and elementary functions that err by at most four units in the last place.
"""
