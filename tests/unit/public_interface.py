"""Print the public interface, as tests/unit/public_interface.txt keeps it (docs/stability.md)."""

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator

import rebalance_core
from rebalance_core import spark
from rebalance_core.audit.registry import MEANINGS
from rebalance_core.cli.jobs import JOBS, build_parser
from rebalance_core.cli.terminal import ExitCode
from rebalance_core.contracts import ALL_TABLES, CONTRACT_VERSION


class _Default:
    """Stands for a default: its value may change, that there is one may not."""

    def __repr__(self) -> str:
        return "…"


def functions() -> Iterator[str]:
    """Yield what `rebalance_core` and `rebalance_core.spark` export, with parameters."""
    for module in (rebalance_core, spark):
        for name in sorted(module.__all__):
            exported = getattr(module, name)
            of_others = not getattr(exported, "__module__", "rebalance_core").startswith(
                "rebalance_core"
            )
            if not of_others:
                shown = _parameters(exported) if callable(exported) else ""
                yield f"{module.__name__}.{name}{shown}"


def _parameters(exported: Callable[..., object]) -> str:
    signature = inspect.signature(exported)
    parameters = [
        one.replace(
            annotation=one.empty, default=one.empty if one.default is one.empty else _Default()
        )
        for one in signature.parameters.values()
    ]
    bare = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return str(bare)


def options() -> Iterator[str]:
    """Yield each option of each job."""
    for name in JOBS:
        whole = build_parser(JOBS, name)
        (subparsers,) = (
            action for action in whole._actions if isinstance(action, argparse._SubParsersAction)
        )
        for action in subparsers.choices[name]._actions:
            yield f"{name} {' '.join(action.option_strings) or action.dest}"


def columns() -> Iterator[str]:
    """Yield each column of each table with its type."""
    for table in ALL_TABLES.values():
        for column in table.columns:
            yield f"{table.name}.{column.name} {column.type}{' NULL' if column.nullable else ''}"


def interface() -> str:
    """Return the whole interface, a name a line."""
    parts = {
        "Python": functions(),
        "options": options(),
        "exit codes": (f"{code.value} {code.name}" for code in ExitCode),
        f"tables of contract version {CONTRACT_VERSION}": columns(),
        "rules": sorted(MEANINGS),
    }
    return "\n".join(line for title, lines in parts.items() for line in (f"[{title}]", *lines, ""))


if __name__ == "__main__":
    sys.stdout.write(interface())
