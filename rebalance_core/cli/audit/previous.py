"""The night that `--previous` names, and what changed since."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.redact import Redaction
from rebalance_core.cli.audit.page import shown_findings
from rebalance_core.cli.ingest.job import count_by
from rebalance_core.cli.run.output_folder import LocalFolder, OutputFolder, is_local, spark_location
from rebalance_core.cli.run.run_record import read_run
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.report.timeline.night import Previous
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGES_ON_PAGE = 50


@dataclass(frozen=True, eq=False)
class PreviousAudit:
    """What an earlier audit found.

    Attributes:
        end_ms: its end.
        findings: those it kept.
        cut: rules of which it did not keep all.
    """

    end_ms: int
    findings: "DataFrame"
    cut: Sequence[str]

    def changes(self, findings: "DataFrame", redaction: Redaction | None) -> Previous:
        """What is new, gone and still there in all findings of this night.

        ``redaction``: for findings of the last night, which may tell of clients; None: they may.
        """
        from rebalance_core.spark.audit.queries import changed_since

        new, gone, still = changed_since(findings, self.findings, self.cut)
        return Previous(
            self.end_ms,
            tuple(shown_findings(new, CHANGES_ON_PAGE)),
            tuple(shown_findings(gone, CHANGES_ON_PAGE, redaction)),
            still.count(),
        )

    @property
    def notes(self) -> list[str]:
        """What the reader has to know of the comparison."""
        if not self.cut:
            return []
        return [
            f"Which findings of {', '.join(self.cut)} are new is not known: the last night kept "
            "only the gravest (audit.findings_per_rule)."
        ]


def read_previous_audit(location: str, session: "SparkSession") -> PreviousAudit:
    """The night that was written there.

    Raises:
        InputRefused: see `audit_record`.
    """
    local = is_local(location)
    folder = LocalFolder(location) if local else HadoopFolder(location, session)
    verdict = audit_record(folder)["audit"]
    ddl = AUDITED_TABLES["findings"].ddl
    where = f"{spark_location(location).rstrip('/')}/findings"
    kept = session.read.schema(ddl).parquet(where)
    return PreviousAudit(
        verdict["end_ms"], kept, cut_rules(count_by(kept, "rule_id"), verdict["findings"])
    )


def cut_rules(kept: Mapping[str, int], counted: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Rules of which fewer findings were kept than counted, by severity and accepted ones.

    >>> cut_rules({"A": 3, "B": 1}, {"A": {"ERROR": 2, "accepted": 1}, "B": {"INFO": 2}})
    ['B']
    """
    return sorted(rule for rule, by in counted.items() if kept.get(rule, 0) < sum(by.values()))


def audit_record(folder: OutputFolder) -> dict[str, Any]:
    """The record of an audited night.

    Raises:
        InputRefused: the folder is not the result of an audit that this version reads.
    """
    record = read_run(folder)
    if record["job"] != "audit":
        raise InputRefused(
            f"--previous {folder.location}: is the result of {record['job']}, not of audit"
        )
    return record
