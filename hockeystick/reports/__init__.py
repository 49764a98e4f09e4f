"""Reports: one page for the person who approves a release, with every number proven.

``Subject`` is what a report is about, ``investigate`` asks all that its page says, and ``page``
writes it: HTML that needs no network, with curves that answer to the pointer.
"""

from __future__ import annotations

from hockeystick.reports.course import Course, course_of
from hockeystick.reports.findings import Attack, Findings, Point, Subject, investigate
from hockeystick.reports.libraries import require_libraries
from hockeystick.reports.page import page

__all__ = [
    "Attack",
    "Course",
    "Findings",
    "Point",
    "Subject",
    "course_of",
    "investigate",
    "page",
    "require_libraries",
]
