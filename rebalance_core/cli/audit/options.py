"""The options of `audit`, checked: every mistake is named at once."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.cli.settings import AuditSettings
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.statuses import ERROR, SEVERITIES
from rebalance_core.model.times import HOUR_MS

PROPAGATION = "propagation"
"""The table of `propagate` that an audit may read."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions(JobOptions):
    """The options of `audit`."""

    output: str
    collection: str | None = None
    input: str | None = None
    fail_on: str = ERROR
    accepted: str | None = None
    write_accepted: str | None = None
    previous: str | None = None
    redact_clients: bool = False
    propagation: str | None = None

    def judging(
        self, settings: AuditSettings, accepted: tuple[Acceptance, ...], now: datetime
    ) -> dict[str, Any]:
        """The options of `process.audit.judges.judges_of`."""
        hours = settings.max_age_hours
        now_ms = int(now.timestamp() * 1000)
        return {
            "accepted": accepted,
            "stale_hours": settings.stale_after_hours,
            "not_before_ms": None if hours is None else now_ms - int(hours * HOUR_MS),
            "redact_salt": settings.redact_salt if self.redact_clients else None,
        }


def add_audit_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_audit_options` checks them."""
    parser.add_argument(
        "--collection", metavar="DIR", help="logs, stores and dumps, as docs/ingest.md says"
    )
    parser.add_argument("--input", metavar="DIR", help="the tables of an earlier ingest instead")
    parser.add_argument("--output", metavar="DIR", help="ledger, findings and page; a fresh folder")
    parser.add_argument(
        "--fail-on",
        metavar="SEVERITY",
        default=ERROR,
        help="exit 3 from here on: ERROR (default), WARNING or INFO",
    )
    parser.add_argument("--accepted", metavar="FILE", help="known findings, with reason and expiry")
    parser.add_argument(
        "--write-accepted", metavar="FILE", help="first run: accept what is found now"
    )
    parser.add_argument(
        "--previous", metavar="DIR", help="the previous run's output, to compare with"
    )
    parser.add_argument(
        "--propagation",
        metavar="DIR",
        help="output of `rebalance propagate`: how late a group that had not settled is",
    )
    parser.add_argument(
        "--redact-clients", action="store_true", help="no client id or address in the output"
    )


def read_audit_options(arguments: argparse.Namespace, argv: tuple[str, ...]) -> AuditOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = list(_mistakes(arguments))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    names = (
        "collection", "input", "output", "accepted", "write_accepted", "previous", "propagation",
    )  # fmt: skip
    return AuditOptions(
        **common_values(arguments, argv),
        **{name: getattr(arguments, name) for name in names},
        fail_on=arguments.fail_on.upper(),
        redact_clients=arguments.redact_clients,
    )


def _mistakes(arguments: argparse.Namespace) -> Iterator[str]:
    if not arguments.output:
        yield "--output DIR is missing"
    if bool(arguments.collection) == bool(arguments.input):
        yield "name either --collection DIR or --input DIR"
    if arguments.collection and not is_local(arguments.collection):
        yield (
            f"--collection {arguments.collection}: must be a folder that driver and executors "
            "mount; copy it there first"
        )
    given = arguments.propagation
    if given and is_local(given) and not (local_path(given) / PROPAGATION).is_dir():
        yield (
            f"--propagation {given}: there is no folder {PROPAGATION} in it; name the output of "
            "`rebalance propagate`"
        )
    if arguments.fail_on.upper() not in SEVERITIES:
        hint = did_you_mean(arguments.fail_on, SEVERITIES)
        yield f"--fail-on {arguments.fail_on}: expected one of {', '.join(SEVERITIES)}{hint}"
    if arguments.accepted and arguments.accepted == arguments.write_accepted:
        yield "--accepted and --write-accepted name the same file; write into another one"
