"""What every audit has to show, wherever its tables are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rebalance_core.audit.outcome import Judged
from rebalance_core.audit.redact import Redaction
from rebalance_core.checks.digest import TableWritten
from rebalance_core.report.audit_report import Previous, ShownFinding
from rebalance_core.report.group_pictures import Rows


class Audited(Judged, Protocol):
    """The findings of a run: all of them, and once `write` is done those that were written."""

    def write(self, findings_per_rule: int, redact_salt: str | None) -> Mapping[str, TableWritten]:
        """Write findings and verdicts, and the ledger if it is to be redacted.

        Args:
            findings_per_rule: of each rule the worst findings are kept.
            redact_salt: of the names for client ids; None: the ledger is written already.
        """

    def worst_groups(self, groups: int) -> list[tuple[str, str]]:
        """(cluster, consumer_group) of the groups with the worst findings."""

    def to_accept(self) -> Iterable[Mapping[str, Any]]:
        """What a file of acceptances names of the open findings."""

    def changes(self, redaction: Redaction | None) -> Previous | None:
        """What changed since the previous audit; None: none was given.

        ``redaction``: for earlier findings, which may tell of clients; None: they may.
        """

    def truncated(self) -> Sequence[str]:
        """Rules of which the previous audit did not keep all findings."""

    def shown(self, findings: int, *, with_info: bool) -> list[ShownFinding]:
        """The worst findings as written."""

    def rows_of_groups(self, groups: Sequence[tuple[str, str]]) -> Mapping[str, Rows]:
        """Rows of the ledger as written, for the page."""
