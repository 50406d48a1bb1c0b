"""What the command line knows of a job: enough that a new job is one entry in the registry."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_core.cli.exit_codes import ExitCode


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options every job has. `argv` is what was typed, for the record."""

    argv: tuple[str, ...]
    config: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    json: bool = False
    dry_run: bool = False
    overwrite: bool = False
    break_lock: bool = False
    debug: bool = False
    master: str | None = None
    run_on: str = "auto"


@dataclass(frozen=True)
class JobReport:
    """What a job has to say on stdout: the same facts for a person and for a program."""

    text: str
    facts: Mapping[str, Any]
    exit_code: int = ExitCode.OK


@dataclass(frozen=True)
class Job:
    """One job: its name, its options and the function that runs it.

    `read_options` checks what argparse read and raises `UsageError` with every mistake. `run` may
    import pyspark; the other two may not.
    """

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    read_options: Callable[[argparse.Namespace, tuple[str, ...]], Any]
    run: Callable[[Any], JobReport]


def common_values(arguments: argparse.Namespace, argv: tuple[str, ...]) -> dict[str, Any]:
    """The fields of `JobOptions` from what argparse read."""
    return {
        "argv": argv,
        "config": tuple(arguments.config),
        "set": tuple(arguments.set),
        "json": arguments.json,
        "dry_run": arguments.dry_run,
        "overwrite": arguments.overwrite,
        "break_lock": arguments.break_lock,
        "debug": arguments.debug,
        "master": arguments.master,
        "run_on": arguments.run_on,
    }
