"""Plans as files, and numbers and names as people write them."""

from hockeystick.io.call_text import parse_plan
from hockeystick.io.contents import shown
from hockeystick.io.numbers import parse, parse_real
from hockeystick.io.plan_file import PlanFile, load_plan
from hockeystick.io.saving import save_plan

__all__ = ["PlanFile", "load_plan", "parse", "parse_plan", "parse_real", "save_plan", "shown"]
