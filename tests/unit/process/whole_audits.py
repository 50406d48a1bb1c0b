"""An audit of tables with their ledger in one go: what audits in parts are compared with."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rebalance_core.process.audit_pass import audit_clusters, run_group_rules
from rebalance_core.process.audited import AuditResult
from rebalance_core.process.cluster_tables import read_cluster_tables
from rebalance_core.process.group_snapshots import by_group, group_tables, snapshots_of


def audit_tables(tables: Mapping[str, pa.Table], **options: Any) -> AuditResult:
    """Judge every cluster, then every group; ``options`` are those of `audit_clusters`."""
    audited = audit_clusters(read_cluster_tables(tables), **options)
    snapshots = snapshots_of(by_group(group_tables(tables)))
    return audited.result(run_group_rules(audited.groups, snapshots))
