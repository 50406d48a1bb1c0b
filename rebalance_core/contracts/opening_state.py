"""The tables from which a later `ingest` or `audit` begins: the facts from a collection's files."""

from typing import Final

from rebalance_core.contracts.table import Table, columns

_EVIDENCE = """
    part STRING the subject: the cluster, a group, a topic, commits; or counts of a file
    key STRING the group or topic; empty: neither
    kind STRING of the statement, or of the file
    at_ms? BIGINT when it was true
    place STRING the broker, client or name server that the file comes from
    position BIGINT orders rows with the same time
    source STRING file and line
    fields STRING a JSON object
    """

EVIDENCE = Table(
    "evidence",
    "A statement from a file. Only `--state` reads this table: kinds and fields may change with "
    "each release.",
    columns(_EVIDENCE),
)

_EVIDENCE_FILES = """
    name STRING the file's path in its collection; empty: the collection as a whole
    fields STRING a JSON object
    """

EVIDENCE_FILES = Table(
    "evidence_files",
    "A file whose statements are in `evidence`, and how far it was read. Only `--state` reads "
    "this table.",
    columns(_EVIDENCE_FILES),
    key=("name",),
)

EVIDENCE_TABLES: Final[dict[str, Table]] = {t.name: t for t in (EVIDENCE, EVIDENCE_FILES)}
