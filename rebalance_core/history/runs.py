"""Selects the runs in a folder that count as nights, and states why others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.run_folder import refuse_unreadable

if TYPE_CHECKING:
    from rebalance_core.contracts.run_record import AuditRecord, StoredRun

AUDIT, PROPAGATE = "audit", "propagate"


@dataclass(frozen=True)
class Run:
    """A finished run: its folder and its `_run.json`."""

    folder: str
    record: StoredRun

    @property
    def run_id(self) -> str:
        """Return the run's own id."""
        return str(self.record["run_id"])

    @property
    def ends(self) -> dict[str, int]:
        """Return the end of an audit's period by cluster, epoch ms UTC."""
        return {name: audited["end_ms"] for name, audited in self.clusters.items()}

    @property
    def clusters(self) -> Mapping[str, AuditRecord]:
        """Return the audit of each cluster; none if the run is no audit."""
        audit = self.record.get("audit")
        return {} if audit is None else audit.get("clusters", {})


@dataclass(frozen=True)
class RunList:
    """The runs of a folder.

    Attributes:
        nights: audits with the clusters that count, by end, then cluster.
        propagated: runs of `propagate`.
        left_out: "NAME: reason" for each folder, or cluster in one, that does not count.
    """

    nights: Sequence[tuple[Run, str]]
    propagated: Sequence[Run]
    left_out: Sequence[str]


def choose_runs(folders: Iterable[tuple[str, StoredRun | None]]) -> RunList:
    """Choose the nights among all folders, given in any order.

    If several audits of a cluster have the same end, the one that started last counts. If two of
    these have the same id or start time but different rows, neither counts, because nothing shows
    which is right.

    Args:
        folders: the folders, each with its record, or None without a valid record.
    """
    audits, propagated, left_out = [], [], []
    for folder, record in sorted(folders, key=lambda entry: entry[0]):
        reason = _refusal(folder, record)
        if reason is not None:
            left_out.append(f"{folder}: {reason}")
        elif record is not None and record["job"] == PROPAGATE:
            propagated.append(Run(folder, record))
        elif record is not None:
            audits.append(Run(folder, record))
    rivals: dict[tuple[int, str], list[Run]] = {}
    for run in audits:
        if not run.ends:
            left_out.append(f"{run.folder}: it did not audit a cluster")
        for cluster, end_ms in run.ends.items():
            rivals.setdefault((end_ms, cluster), []).append(run)
    nights = []
    for (_, cluster), runs in sorted(rivals.items()):
        chosen = max(runs, key=_newest)
        contradicting = [run for run in runs if _contradict(run, chosen)]
        if contradicting:
            names = ", ".join(sorted({chosen.folder, *(run.folder for run in contradicting)}))
            left_out.append(
                f"{names}: these runs audited {cluster} up to the same moment and claim to be the "
                "same run but wrote different rows; all are left out"
            )
        else:
            nights.append((chosen, cluster))
    return RunList(nights, propagated, left_out)


def _refusal(folder: str, record: StoredRun | None) -> str | None:
    """Return why the folder is not a readable run, or None if it is."""
    try:
        refuse_unreadable(record, "it", CONTRACT_VERSION)
    except InputRefused as error:
        return str(error)
    assert record is not None
    if record["job"] not in (AUDIT, PROPAGATE):
        return f"the output of {record['job']}, not of audit"
    if record["job"] == AUDIT and not record.get("audit"):
        return "an audit without a verdict"
    if record.get("outputs") is None:
        return "its record lists no tables"
    if record.get("run_id") is None:
        return "its record has no run_id"
    return None


def _newest(run: Run) -> tuple[str, str]:
    return str(run.record.get("started_at")), run.folder


def _contradict(run: Run, other: Run) -> bool:
    same = run.run_id == other.run_id or _newest(run)[0] == _newest(other)[0]
    return same and run.record["outputs"] != other.record["outputs"]
