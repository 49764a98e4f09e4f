"""The mpmath room: what the kernels compute, to any precision, obvious rather than fast.

It serves ``digits=``, the closed forms, and the tests of the kernels, which it never imports. All
functions work at mpmath's current precision and return numbers good to it.
"""
