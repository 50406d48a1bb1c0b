"""The audited night, from the end of the previous run to the end of this run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.audit.completeness import LOG_GAP_MS, is_unsure
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.model.times import DAY_MS, utc
from rebalance_core.model.verdicts import INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun

NIGHT_MS = DAY_MS
"""The length of a night whose start is not recorded."""
ENDED_BY = "ended_by"
"""The evidence key for what shows that a finding has ended (`confidence.borne_out`)."""
_OVER = "the night began after it"


@dataclass(frozen=True)
class EarlierNight:
    """The night of a cluster that an earlier run audited.

    Attributes:
        night_ms: its start.
        end_ms: its end.
        seen_ms: the time up to which it saw events end; its brokers' logs end there, and an
            incomplete run may have missed ends during its night.
        stated: the ends after that time that it stated nevertheless, by `identity`.
    """

    night_ms: int
    end_ms: int
    seen_ms: int
    stated: Mapping[tuple[object, ...], int] = field(default_factory=dict)


@dataclass(frozen=True)
class NightBegin:
    """The start of each cluster's night.

    Attributes:
        since_ms: the start for all clusters; None to derive it from the previous run, the state or
            `NIGHT_MS`.
        place: location of the previous run, for messages; empty if there is none.
        previous: that run's nights, by cluster.
        state_ms: end of the opening state, if there is one.
    """

    since_ms: int | None = None
    place: str = ""
    previous: Mapping[str, EarlierNight] = field(default_factory=dict)
    state_ms: int | None = None

    def of_runs(self, runs: Mapping[str, AuditRun]) -> dict[str, AuditRun]:
        """Return the runs with their nights.

        Raises:
            UsageError: the night would begin after the collection's last moment.
            InputRefused: the previous run has other clusters, or is later.
        """
        last_ms = max((run.end_ms for run in runs.values()), default=None)
        if last_ms is not None and self.since_ms is not None and self.since_ms >= last_ms:
            raise UsageError(
                f"--since {utc(self.since_ms)} is not before the end of the collection, "
                f"{utc(last_ms)}"
            )
        if self.place and runs and not runs.keys() & self.previous.keys():
            raise InputRefused(
                f"--previous {self.place}: contains an audit of {_names(self.previous)}, but this "
                f"run audits {_names(runs)}; name the last audit of this cluster, or omit the "
                "option"
            )
        return {name: self._with_night(name, run) for name, run in runs.items()}

    def _with_night(self, cluster: str, run: AuditRun) -> AuditRun:
        before = self.previous.get(cluster)
        stated: Mapping[tuple[object, ...], int] = {}
        if self.since_ms is not None:
            night_ms = over_ms = min(self.since_ms, run.end_ms)
        elif before is None and self.state_ms is not None and self.state_ms < run.end_ms:
            night_ms = over_ms = self.state_ms
        elif before is None:
            night_ms = over_ms = max(0, run.end_ms - NIGHT_MS)
        elif before.end_ms < run.end_ms:
            night_ms, over_ms = before.end_ms, min(before.end_ms, before.seen_ms)
            stated = before.stated
        else:  # the same night again
            night_ms = over_ms = before.night_ms
            if before.night_ms >= run.end_ms:
                raise InputRefused(
                    f"--previous {self.place}: its night of {cluster} began at "
                    f"{utc(before.night_ms)}, after the end of this collection, "
                    f"{utc(run.end_ms)}; name an earlier audit, or omit the option"
                )
        return replace(run, night_ms=night_ms, over_ms=over_ms, stated=stated)


NIGHT = NightBegin()
"""No previous run is known."""


def _names(clusters: Iterable[str]) -> str:
    return ", ".join(sorted(clusters)) or "no cluster"


def logged_ms(run: AuditRun) -> int:
    """Return when the brokers' logs end; events that ended later may be in no log.

    A log that ends long before the collection does belongs to a silent broker or is reported as
    incomplete.
    """
    until = run.coverage.logged_until
    return run.end_ms if until is None or until < run.end_ms - LOG_GAP_MS else until


Found = TypeVar("Found", bound="FindingsBegun")


def identity(finding: FindingsBegun) -> tuple[object, ...]:
    """Return what a finding of a cluster states, except its end; with its severity, as one that has
    become worse was not known.
    """
    return (
        finding["rule_id"],
        finding["severity"],
        finding["consumer_group"],
        finding["topic"],
        finding["broker_name"],
        finding["queue_id"],
        finding["client_id"],
        finding["first_ms"],
    )


def stated_ends(
    findings: Iterable[FindingsBegun], seen_ms: int, end_ms: int
) -> dict[tuple[object, ...], int]:
    """Return the ends between a run's ``seen_ms`` and its end that its findings above INFO about a
    cluster state, by `identity`.
    """
    ends: dict[tuple[object, ...], int] = {}
    for finding in findings:
        last_ms = finding["last_ms"]
        if finding["severity"] != INFO and last_ms is not None and seen_ms <= last_ms < end_ms:
            ends[identity(finding)] = max(last_ms, ends.get(identity(finding), last_ms))
    return ends


def within_night(finding: Found, run: AuditRun | None) -> Found:
    """Return the finding, as INFO if it ended before the night began."""
    if run is None or run.over_ms == 0:
        return finding
    last_ms = finding["last_ms"]
    if last_ms is None:
        return finding
    if last_ms >= run.over_ms and last_ms > run.stated.get(identity(finding), -1):
        return finding
    if finding["severity"] == INFO and not is_unsure(finding):
        return finding
    over = finding.copy()
    over["severity"] = INFO
    over["summary"] = (
        f"{finding['summary'].removesuffix('.')}; it ended at {utc(last_ms)}, before this night "
        f"began ({utc(run.night_ms)})."
    )
    kept = {name: value for name, value in finding["evidence"].items() if name != "not_covered"}
    over["evidence"] = {**kept, ENDED_BY: _OVER}
    over["remedy"] = f"Nothing now. If it recurs: {finding['remedy']}"
    return over


def has_ended(finding: FindingsBegun) -> bool:
    """Return True if the finding is INFO because it has ended."""
    return finding["severity"] == INFO and ENDED_BY in finding["evidence"]
