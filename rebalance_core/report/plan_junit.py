"""The expectations of a plan as JUnit XML, with a test per group and figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rebalance_core.contracts.planning import BROKEN, KEPT
from rebalance_core.report.junit import ERROR, FAILURE, TestCase, Trouble, junit_xml
from rebalance_core.report.visible import visible

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsRow

NAME = "rebalance plan"
"""The name of the root element, which identifies such a file."""


def render_expectations(rows: Iterable[tuple[ExpectationsRow, str]], finished_ms: int) -> str:
    """Return the XML, with a suite per variant; an unknown figure is an error.

    Args:
        rows: Rows of ``expectations``, each with its sentence.
        finished_ms: When the run ended, epoch ms UTC.
    """
    suites: dict[str, list[TestCase]] = {}
    for row, text in rows:
        suite = f"{row['scenario']}, {row['strategy']}, seed {row['seed']}"
        figure = f"{row['figure']} (expect {row['expectation']})"
        name = f"{row['cluster']}/{row['consumer_group']}: {figure}"
        trouble = None
        if row["verdict"] != KEPT:
            tag = FAILURE if row["verdict"] == BROKEN else ERROR
            trouble = Trouble(tag, row["figure"], text, visible(text))
        suites.setdefault(suite, []).append(TestCase(name, trouble))
    return junit_xml(NAME, suites, finished_ms)
