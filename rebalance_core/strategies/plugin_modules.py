"""Objects that settings name as ``module:attribute``: which ones may be imported, and from where.

Importing a module runs its code, and the objects are called with names from input files. A caller
therefore allows packages by name; the standard library is never among them (``os:system`` is a hash
function by its signature), and the current folder is not on the import path unless PYTHONPATH names
it.
"""

import inspect
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from rebalance_core.model.errors import Terminated, UsageError, did_you_mean

ALLOW_OPTION = "--allow-plugins"
ALLOW_VARIABLE = "REBALANCE_ALLOW_PLUGINS"
EXPECTED = "expected module:attribute, e.g. acme.rebalance:Grey"
_NEVER = {
    *sys.stdlib_module_names,
    *sys.builtin_module_names,
    "builtins",
    "__main__",
    "__mp_main__",
}


def package_name(text: str) -> str:
    """Read the name of a package that may contain plugins.

    Raises:
        ValueError: It is not a package name, or the package is part of Python itself.
    """
    if not text or not all(part.isidentifier() for part in text.split(".")):
        raise ValueError("expected the name of a Python package, e.g. acme or acme.rebalance")
    if _is_pythons(text):
        raise ValueError("part of Python itself, which is never allowed; name the plugin's package")
    return text


def find_object(what: str, text: str, allowed: Collection[str] | None) -> Any:
    """Import the object named by ``module:attribute``; a class is returned as a class.

    Args:
        what: The setting, for messages.
        text: ``module:attribute``; the attribute may contain dots.
        allowed: The packages that may be imported; None: all except Python's own, for callers that
            name the module in their code.

    Raises:
        UsageError: The text has another form, the package is not allowed, the import fails or ends
            the process, the attribute is missing, or it is defined outside the package.
    """
    setting = f"{what} = {text!r}"
    module, colon, attribute = text.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{setting}: {EXPECTED}")
    _refuse_unless_allowed(setting, module, allowed)
    value: Any = _imported(setting, module)
    for part in attribute.split("."):
        if part.startswith("__"):
            raise UsageError(f"{setting}: {part} is Python's own; name a function, class or object")
        if not hasattr(value, part):
            near = did_you_mean(part, [name for name in dir(value) if not name.startswith("_")])
            raise UsageError(f"{setting}: {module} has no {attribute}{near}")
        value = getattr(value, part)
        home = _home(value)
        if home is not None and not _is_allowed(home, allowed):
            raise UsageError(
                f"{setting}: {attribute} is defined in {home}, not in {module}; "
                + _remedy(home, allowed)
            )
    return value


def _refuse_unless_allowed(setting: str, module: str, allowed: Collection[str] | None) -> None:
    if not _is_allowed(module, allowed):
        raise UsageError(f"{setting}: {_remedy(module, allowed)}")


def _remedy(module: str, allowed: Collection[str] | None) -> str:
    if _is_pythons(module):
        return f"{module} is part of Python itself, which never contains plugins"
    package = module.partition(".")[0]
    others = f" (allowed: {', '.join(sorted(allowed))})" if allowed else ""
    return (
        f"a plugin is code that runs with your rights; if you trust {package}, allow it: "
        f"{ALLOW_OPTION} {package}, or {ALLOW_VARIABLE}={package}{others}"
    )


def _is_allowed(module: str, allowed: Collection[str] | None) -> bool:
    if _is_pythons(module):
        return False
    return allowed is None or any(f"{module}.".startswith(f"{package}.") for package in allowed)


def _is_pythons(module: str) -> bool:
    return module.partition(".")[0] in _NEVER


def _home(value: Any) -> str | None:
    """Return the module that defines a module, function or class, or None for other objects."""
    if isinstance(value, ModuleType):
        return value.__name__
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return None
    home = getattr(value, "__module__", None)
    if home is None:  # a method of a built-in type, bound to an object
        home = type(getattr(value, "__self__", None)).__module__
    return str(home)


def _imported(setting: str, module: str) -> ModuleType:
    try:
        with _import_path():
            return import_module(module)
    except (KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:  # including SystemExit: a plugin must not end the job
        here = "the current folder counts only if PYTHONPATH includes it"
        hint = f"; it must be installed or in a folder of PYTHONPATH ({here})"
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(
            f"{error.name}."
        )
        raise UsageError(
            f"{setting}: {module} cannot be imported ({type(error).__name__}: {error})"
            + hint * missing
        ) from error


@contextmanager
def _import_path() -> Iterator[None]:
    """Remove the current folder if Python rather than the user put it on the import path.

    ``python -m`` and an interactive Python put it first, a script its own folder, and an empty
    entry of PYTHONPATH stands for it (pyspark's launcher leaves such an entry).
    """
    before = list(sys.path)
    configured = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    here = os.path.realpath(os.curdir)
    if here not in {os.path.realpath(entry) for entry in configured if entry}:
        sys.path[:] = _without(here, before, everywhere="" in configured and configured != [""])
    kept = list(sys.path)
    try:
        yield
    finally:
        # Entries that the import itself added remain, before or after the earlier entries.
        added = [entry for entry in sys.path if entry not in kept]
        sys.path[:] = [*before, *added]


def _without(folder: str, path: Sequence[str], *, everywhere: bool) -> list[str]:
    return [
        entry
        for place, entry in enumerate(path)
        if entry not in ("", os.curdir)
        and not ((everywhere or place == 0) and os.path.realpath(entry) == folder)
    ]
