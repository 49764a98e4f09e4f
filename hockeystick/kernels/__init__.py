"""The numba room: jitted functions of floats and contiguous arrays, and nothing else.

Nothing here validates, raises or knows what a mechanism is. Everything is tested against
``mpmath``. Kernels take ``njit`` from ``compiled``, which interprets them until loading numba pays,
or ``njit_at_once``; those that return several arrays are ``interruptible`` by Ctrl-C.

Round-off is accounted, not assumed away: functions that return ``error`` bound the distance
between what they computed and the same sum in exact arithmetic. The bounds assume IEEE 754 double
precision and elementary functions that err by at most four units in the last place.
"""
