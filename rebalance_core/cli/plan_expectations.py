"""Reports on a plan's expectations: sentences, JUnit XML and the exit code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.planning_options import PlanOptions
from rebalance_core.cli.run.gate_file import refuse_unwritable
from rebalance_core.cli.terminal import ExitCode
from rebalance_core.contracts.planning import BROKEN, KEPT
from rebalance_core.model.verdicts import UNKNOWN
from rebalance_core.planning.expectations import Expectation, sentence
from rebalance_core.planning.variants import scenarios_of
from rebalance_core.report.plan_junit import NAME, render_expectations

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ExpectationsRow


def refuse_unwritable_junit(options: PlanOptions) -> None:
    """Raise the error that writing the ``--junit`` file would raise."""
    mark = NAME if options.overwrite else None
    refuse_unwritable("--junit", options.junit, mark, "plan")


@dataclass(frozen=True)
class Judgement:
    """The judged rows of ``expectations``, each with its sentence."""

    rows: "Sequence[tuple[ExpectationsRow, str]]"

    @property
    def exit_code(self) -> ExitCode:
        """DIFFERENCES unless every expectation is known to be kept."""
        kept = all(row["verdict"] == KEPT for row, _ in self.rows)
        return ExitCode.OK if kept else ExitCode.DIFFERENCES

    def facts(self) -> dict[str, Any]:
        """Return the number of expectations by verdict, and the sentences of those that are not
        kept.
        """
        verdicts = [row["verdict"] for row, _ in self.rows]
        return {
            "kept": verdicts.count(KEPT),
            "broken": verdicts.count(BROKEN),
            "unknown": verdicts.count(UNKNOWN),
            "sentences": [text for row, text in self.rows if row["verdict"] != KEPT],
        }

    def write(self, junit: str | None) -> None:
        """Write the JUnit XML if a file is named."""
        if junit is not None:
            text = render_expectations(self.rows, round(time() * 1000))
            Path(junit).write_text(text, "utf-8")


NOTHING_EXPECTED = Judgement(())


def judgement_of(options: PlanOptions, rows: "Iterable[ExpectationsRow]") -> Judgement:
    """Return the rows with their sentences, which name the files' lines."""
    of: dict[str, Sequence[Expectation]]
    of = {scenario.name: scenario.expectations for scenario in scenarios_of(options.variants)}

    def place(row: "ExpectationsRow") -> str:
        searched = options.searched
        expectations = of[row["scenario"]] if searched is None else searched.expectations
        return expectations[row["expectation"] - 1].place

    return Judgement([(row, sentence(row, place(row))) for row in rows])


def expectation_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a summary of `Judgement.facts`, then a line per expectation that is not kept.

    Yield nothing without expectations.
    """
    kept, total = facts["kept"], facts["kept"] + facts["broken"] + facts["unknown"]
    if total:
        yield ""
        yield f"Expectations: {kept:,} of {total:,} kept"
        yield from (f"  {text}" for text in facts["sentences"])
