"""Makes custom strategies, hash functions and room resolvers available in Spark's tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from pyspark import cloudpickle

from rebalance_core.model.errors import UsageError
from rebalance_core.strategies import custom

_PACKAGE = __name__.partition(".")[0]
_Body = TypeVar("_Body", bound=Callable[..., Any])


class _TaskWithPlugins:
    """The body of a task with the plugins that were registered where it was created.

    Plugins are sent by value with the code of their modules, which executors need not have.
    """

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body, self._plugins = body, custom.plugins()

    def __call__(self, *arguments: Any) -> Any:
        return self._body(*arguments)

    def __getstate__(self) -> bytes:
        names = {type(plugin.made).__module__ for plugin in self._plugins.values()}
        names |= {getattr(plugin.made, "__module__", "") for plugin in self._plugins.values()}
        roots = {name.partition(".")[0] for name in names} - {"", "__main__", "builtins", _PACKAGE}
        modules = [sys.modules[root] for root in sorted(roots & sys.modules.keys())]
        try:
            for module in modules:
                cloudpickle.register_pickle_by_value(module)
            return bytes(cloudpickle.dumps((self._plugins, self._body)))
        except (TypeError, AttributeError, ImportError, ValueError) as error:
            called = ", ".join(sorted({plugin.name for plugin in self._plugins.values()}))
            raise UsageError(f"{called} cannot be sent to Spark's tasks: {error}") from error
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)

    def __setstate__(self, state: bytes) -> None:
        self._plugins, self._body = cloudpickle.loads(state)
        custom.install(self._plugins)


def in_tasks(body: _Body) -> _Body:
    """Return the body of a task with the registered plugins."""
    return _TaskWithPlugins(body) if custom.plugins() else body  # type: ignore[return-value]  # alike


def function_in_tasks(function: _Body) -> _Body:
    """Apply `in_tasks` to a module-level function whose signature and hints determine how it is
    called.
    """
    carried = in_tasks(function)

    @wraps(function)
    def run(*columns: Any) -> Any:
        return carried(*columns)

    return function if carried is function else run  # type: ignore[return-value]  # alike
