"""What cannot be imported here is not collected: plugs for libraries that are not installed."""

from importlib.util import find_spec

PLUGS = {"dp_accounting": "dp_accounting", "opacus": "opacus", "torch": "torch"}

collect_ignore_glob = [
    pattern
    for library, plug in PLUGS.items()
    if find_spec(library) is None
    for pattern in (f"hockeystick/adapters/{plug}.py", f"hockeystick/adapters/{plug}/*.py")
]
