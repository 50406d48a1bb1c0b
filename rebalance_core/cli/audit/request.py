"""What an audit run is given, resolved before anything is read."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.redact import Redaction
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.settings import Settings
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions


@dataclass(frozen=True)
class AuditRequest:
    """An audit run before it runs.

    Attributes:
        options: of the command line.
        settings: of files and the command line.
        assumed: what is taken for granted where no file says it.
        collection: None: the tables of an earlier ingest are audited.
        accepted: acceptances that hold.
        expired: those that do not any more.
        now: when the run began.
    """

    options: AuditOptions
    settings: Settings
    assumed: Assumptions
    collection: Collection | None
    accepted: tuple[Acceptance, ...]
    expired: tuple[Acceptance, ...]
    now: datetime

    @property
    def judging(self) -> dict[str, Any]:
        """The options of `judges_of`."""
        return self.options.judging(self.settings.audit, self.accepted, self.now)

    @property
    def now_ms(self) -> int:
        """`now` as epoch ms UTC."""
        return int(self.now.timestamp() * 1000)

    @cached_property
    def redaction(self) -> Redaction | None:
        """For texts that were not redacted when they were made; None: they are shown."""
        salt = self.settings.audit.redact_salt
        return Redaction(salt) if self.options.redact_clients else None
