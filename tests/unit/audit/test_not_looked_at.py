"""The sentence on what an audit did not examine."""

from typing import cast

import pytest

from rebalance_core.audit.not_looked_at import not_looked_at
from rebalance_core.contracts.rows import CoverageRow


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["OTHER_BROKER: it is of broker b, and its folder is of broker a"], "1 file set apart"),
        (
            ["OLD_ANSWER: it repeats mqadmin/1-x.txt: no pull of the client is newer"] * 2,
            "2 files set apart",
        ),
        (
            ["UNKNOWN_COMMAND: is the output of a command that ingest does not read"],
            "1 answer of commands that are not read",
        ),
        (
            ["UNPARSABLE_DOCUMENT: is cut off: it ends inside a row"],
            "the missing parts of 1 file that cannot be read to the end",
        ),
        (  # a row of two logs of one broker
            ["OTHER_CLUSTER: it is of cluster d; brokers/a/broker.1.log: BROKEN_GZIP"],
            "1 file set apart; the missing parts of 1 file that cannot be read to the end",
        ),
    ],
)
def test_whole_files_lack_no_part(reasons: list[str], said: str) -> None:
    row = {"host": "mqadmin", "role": "ADMIN", "kind": "mqadmin", "from_ms": 1, "to_ms": 1}
    rows = [row | {"complete": False, "note": f"mqadmin/2-y.txt: {why}"} for why in reasons]
    others = [
        row | {"role": role, "kind": "log", "complete": True, "note": None}
        for role in ("CLIENT", "NAME_SERVER")
    ]
    sentence = not_looked_at(cast("list[CoverageRow]", rows + others))
    assert sentence == f"Not examined: the logs of brokers; {said}."
