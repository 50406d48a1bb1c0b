"""JUnit XML for change gates: suites of tests that pass, fail or are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rebalance_core.report.visible import visible

FAILURE, ERROR = "failure", "error"


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why a test does not pass.

    Attributes:
        tag: `FAILURE` if the subject is wrong, `ERROR` if it could not be tested.
        type: An id.
        message: A sentence.
        text: The details, with invisible characters escaped.
    """

    tag: str
    type: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test, which passes unless it has trouble or is skipped.

    Attributes:
        name: The test's name.
        trouble: Why it does not pass.
        skipped: Why it was not judged.
        output: Further texts, with invisible characters escaped.
    """

    __test__ = False

    name: str
    trouble: Trouble | None = None
    skipped: str | None = None
    output: Sequence[str] = ()


def junit_xml(name: str, suites: Mapping[str, Sequence[TestCase]], finished_ms: int) -> str:
    """Return the XML, with the suites in their order.

    Args:
        name: The name of the root element, which identifies the job that wrote the file.
        suites: Tests by the name of their suite.
        finished_ms: When the run ended, epoch ms UTC.
    """
    root = Element("testsuites", name=name)
    ended = datetime.fromtimestamp(finished_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for of, tests in suites.items():
        suite = SubElement(root, "testsuite", name=visible(of), timestamp=ended)
        for test in tests:
            case = SubElement(suite, "testcase", classname=visible(of), name=visible(test.name))
            if test.trouble is not None:
                why = test.trouble
                shown = SubElement(case, why.tag, type=why.type, message=visible(why.message))
                shown.text = why.text
            elif test.skipped is not None:
                SubElement(case, "skipped", message=visible(test.skipped))
            if test.output:
                SubElement(case, "system-out").text = "\n\n".join(test.output)
        _count(suite)
    _count(root)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, "unicode") + "\n"


def _count(total: Element) -> None:
    cases = list(total.iter("testcase"))
    total.set("tests", str(len(cases)))
    for name, tag in (("failures", FAILURE), ("errors", ERROR), ("skipped", "skipped")):
        total.set(name, str(sum(case.find(tag) is not None for case in cases)))
