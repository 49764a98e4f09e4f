"""Plans as files, and numbers and names as people write them."""

from hockeystick.io.call_text import parse, parse_plan, parse_real
from hockeystick.io.plan_file import PlanFile, load_plan, save_plan

__all__ = ["PlanFile", "load_plan", "parse", "parse_plan", "parse_real", "save_plan"]
