"""Plugs for training libraries; one module or package for each, none loaded by itself."""


def missing(error: ModuleNotFoundError, library: str, extra: str) -> ModuleNotFoundError:
    """Return the error to raise in place of one: it names the extra that brings a library."""
    if (error.name or "").partition(".")[0] != library:
        return error
    how = f"{library} is not installed: pip install 'hockeystick[{extra}]'"
    return ModuleNotFoundError(how, name=library)
