"""Plans as files, and numbers and names as people write them."""

from hockeystick.io.call_text import parse_plan
from hockeystick.io.plan_file import PlanFile, load_plan, save_plan

__all__ = ["PlanFile", "load_plan", "parse_plan", "save_plan"]
