"""Own strategies, hash functions and room resolvers in Spark's tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from pyspark import cloudpickle

from rebalance_core.model.errors import UsageError
from rebalance_core.strategies import custom
from rebalance_core.strategies.registry import install_pieces

_PACKAGE = __name__.partition(".")[0]
_Body = TypeVar("_Body", bound=Callable[..., Any])


class _WithPieces:
    """The body of a task, and the pieces that are registered where it is made.

    They travel by value, with the code of their modules: executors need not have these.
    """

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body, self._pieces = body, custom.pieces()

    def __call__(self, *arguments: Any) -> Any:
        return self._body(*arguments)

    def __getstate__(self) -> bytes:
        names = {type(piece.made).__module__ for piece in self._pieces.values()}
        names |= {getattr(piece.made, "__module__", "") for piece in self._pieces.values()}
        roots = {name.partition(".")[0] for name in names} - {"", "__main__", "builtins", _PACKAGE}
        modules = [sys.modules[root] for root in sorted(roots & sys.modules.keys())]
        try:
            for module in modules:
                cloudpickle.register_pickle_by_value(module)
            return bytes(cloudpickle.dumps((self._pieces, self._body)))
        except (TypeError, AttributeError, ImportError, ValueError) as error:
            called = ", ".join(sorted({piece.name for piece in self._pieces.values()}))
            raise UsageError(f"{called} cannot be sent to Spark's tasks: {error}") from error
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)

    def __setstate__(self, state: bytes) -> None:
        self._pieces, self._body = cloudpickle.loads(state)
        install_pieces(self._pieces)


def in_tasks(body: _Body) -> _Body:
    """The body of a task, which knows the own pieces there too."""
    return _WithPieces(body) if custom.pieces() else body  # type: ignore[return-value]  # alike


def function_in_tasks(function: _Body) -> _Body:
    """`in_tasks` of a function of a module, whose signature and hints decide how it is called."""
    carried = in_tasks(function)

    @wraps(function)
    def run(*columns: Any) -> Any:
        return carried(*columns)

    return function if carried is function else run  # type: ignore[return-value]  # alike
