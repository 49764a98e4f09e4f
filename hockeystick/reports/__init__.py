"""Reports: one page for the person who approves a release, with every number proven.

``investigate`` asks all that a page says of a ``Subject``, ``page`` writes it; ``report`` is both.
"""

from __future__ import annotations

from hockeystick.reports.audit import Audit
from hockeystick.reports.course import Course, course_of
from hockeystick.reports.findings import Attack, Findings, Point, Subject, investigate
from hockeystick.reports.page import Report, day_of_build, page, report, require_libraries

__all__ = [
    "Attack",
    "Audit",
    "Course",
    "Findings",
    "Point",
    "Report",
    "Subject",
    "course_of",
    "day_of_build",
    "investigate",
    "page",
    "report",
    "require_libraries",
]
