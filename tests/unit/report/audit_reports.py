"""Audit runs for the tests of the page, and a reader of what was rendered."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from rebalance_core.report.audit_report import (
    AuditReport,
    Cause,
    FilesOfStatus,
    GroupBalance,
    GroupCounts,
    GroupTimeline,
    OwnerSpan,
    Previous,
    QueueHistory,
    ShownFile,
    ShownFinding,
)
from rebalance_core.report.group_table import GroupRow
from rebalance_core.report.server_table import DOWN, UP, ServerRow
from rebalance_core.report.tonight import GroupDifference, Happening, NightDifference, Tonight

MIDNIGHT = 1_795_219_200_000  # 2026-11-21T00:00:00Z
HOUR = 3_600_000
FROM, TO = MIDNIGHT, MIDNIGHT + 6 * HOUR
VOID = {"meta", "br", "link", "hr", "img", "input", "wbr"}

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>'",
    "evil\u202egnp.exe\u200f",
    "ctl\x00\x1b[31m\r\n\t\x7f\x85",
    "L" * 300,
    "Z" + "\u0301" * 60,
    "sur\ud800rogate\ufffe",
    "日本語トピック" * 20,
    "مجموعة",
    "{{ 7*7 }}{% raw %}",
    "</style></title>]]>-->&lt;",
    "%s %(x)s {0}",
)


def finding(rule_id: str = "ORPHANED_QUEUE", severity: str = "ERROR", **more: Any) -> ShownFinding:
    return ShownFinding(rule_id, severity, more.pop("summary", "a queue has no owner"), **more)


def report(**more: Any) -> AuditReport:
    given: dict[str, Any] = {
        "cluster": "c1",
        "verdict": "FINDINGS",
        "fail_on": "ERROR",
        "from_ms": FROM,
        "to_ms": TO,
        "generated_ms": TO + 1,
        "library_version": "1.2.3",
    }
    return AuditReport(**(given | more))


def queue(
    queue_id: int, *owners: str | None, broker: str = "broker-a", topic: str = "orders"
) -> QueueHistory:
    """A queue whose owners take turns, an hour each; the last one stays."""
    stretches = tuple(
        OwnerSpan(
            FROM + at * HOUR,
            FROM + (at + 1) * HOUR if at + 1 < len(owners) else None,
            owner,
            0 if owner is None else 1,
        )
        for at, owner in enumerate(owners)
    )
    return QueueHistory(topic, broker, queue_id, stretches)


def busy_report() -> AuditReport:
    """Something in every section."""
    orphaned = finding(
        consumer_group="g1",
        topic="orders",
        broker_name="broker-a",
        queue_id=1,
        first_ms=MIDNIGHT + 12_345,
        evidence={"backlog": "41202", "at": "x.txt:3"},
        remedy="Start a consumer.",
    )
    flapping = finding("FLAPPING", "INFO", summary="came back", client_id="c9")
    shared = QueueHistory("orders", "broker-a", 2, (OwnerSpan(FROM, None, "c1", 2),))
    double = QueueHistory(
        "orders", "broker-a", 3, (OwnerSpan(FROM, None, "c1"), OwnerSpan(FROM + HOUR, TO, "c2"))
    )
    return report(
        verdict="FAILED",
        counts={"ERROR": 1, "INFO": 1},
        groups=GroupCounts(4, 1, 1, 1, 1),
        findings=(orphaned, flapping, replace(flapping, accepted="PAY-1182", client_id="c8")),
        rules={"ORPHANED_QUEUE": "No owner.", "FLAPPING": "Never settles."},
        more={"FLAPPING": 3},
        previous=Previous(
            FROM,
            (orphaned,),
            (flapping,),
            (),
            {"new": 1, "reopened": 0, "gone": 1, "still": 7, "not_looked_at": 0},
            difference=NightDifference(
                (GroupDifference("", "g1", {"members": ("2", "3"), "version": ("4", "5")}),),
                (("", "g2"),),
            ),
        ),
        tonight=Tonight(
            FROM,
            TO,
            (
                Happening("", None, FROM, "broker-a is down", 0),
                Happening("", "g1", FROM + HOUR, "Redeploy: 2 joined, 2 left", 4),
            ),
            1,
            1,
        ),
        group_rows=(GroupRow("", "g1", "EQUAL"),),
        timelines=(
            GroupTimeline(
                "g1",
                (queue(0, "c1", "c2"), queue(1, "c1", None), shared, double),
                (Cause(FROM + HOUR, "CONSUMER_LOST c1"),),
            ),
        ),
        balance=(GroupBalance("g1", ("c1", "c2"), (3, 0), (0, 2), 2.0, 1),),
        notes=("broker-c was not collected.",),
        servers=(
            ServerRow("", "broker-a", "broker", DOWN, MIDNIGHT + 61_000, MIDNIGHT, "5.3.3"),
            ServerRow("", "broker-b", "broker", UP, None, TO, None, 3, 1_204, TO),
        ),
        files=(
            FilesOfStatus("REFUSED", 1, (ShownFile("a.log.gz", "broker_log", "is no gzip"),)),
            FilesOfStatus("READ", 1_203, (ShownFile("namesrv/namesrv.log", "namesrv_log"),)),
        ),
    )


def hostile_report() -> AuditReport:
    """Every text from outside is one of HOSTILE."""
    bad = HOSTILE
    found = tuple(
        finding(
            name,
            ("ERROR", "WARNING", "INFO", bad[0])[at % 4],
            summary=bad[at - 5],
            consumer_group=name,
            topic=bad[at - 1],
            broker_name=bad[at - 2],
            queue_id=10**9 + at,
            client_id=bad[at - 3],
            first_ms=10**18 if at == 0 else MIDNIGHT,
            last_ms=-(10**18) if at == 1 else None,
            evidence={name: bad[at - 1]},
            remedy=bad[at - 4],
            accepted=name if at == 5 else None,
        )
        for at, name in enumerate(bad)
    )
    queues = tuple(
        queue(at, bad[at - 1], bad[at - 2], broker=bad[at - 3], topic=name)
        for at, name in enumerate(bad)
    )
    causes = tuple(Cause(FROM + at * HOUR // 3, name) for at, name in enumerate(bad))
    return report(
        cluster=bad[0] + bad[2],
        verdict="INCOMPLETE",
        fail_on=bad[1],
        library_version=bad[0],
        counts={"ERROR": 3, bad[0]: 2},
        findings=found,
        rules=dict(zip(bad, reversed(bad), strict=True)),
        more={bad[0]: 3, "NOT_" + bad[0]: 4},
        previous=Previous(
            FROM,
            found[:4],
            found[4:6],
            found[6:],
            {"new": 4, "reopened": 0, "gone": 2, "still": 7, "not_looked_at": 90},
            difference=NightDifference(
                tuple(GroupDifference(n, n, {"strategy": (n, n), "version": (n, n)}) for n in bad),
                tuple((name, name) for name in bad),
                tuple((name, name) for name in bad),
            ),
        ),
        tonight=Tonight(FROM, TO, tuple(Happening(name, name, FROM, name, 0) for name in bad)),
        timelines=tuple(GroupTimeline(name, queues, causes) for name in bad[:3]),
        balance=tuple(GroupBalance(name, bad, tuple(range(len(bad))), (1,)) for name in bad),
        notes=bad,
        servers=tuple(ServerRow(name, name, name, DOWN, version=name) for name in bad),
        files=(FilesOfStatus("REFUSED", 99, tuple(ShownFile(name, name, name) for name in bad)),),
    )


class Reader(HTMLParser):
    """Checks that every element is closed in order; gathers tags, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.stack, f"never closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> says an attribute twice: {names}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.stack):
            self.text += data


def svgs(page: str) -> list[str]:
    """The outermost SVG elements of a page."""
    found, depth, start = [], 0, 0
    for match in re.finditer(r"<svg\b[^>]*?(/?)>|</svg>", page):
        if match.group(1):
            continue
        if match.group().startswith("</"):
            depth -= 1
            if depth == 0:
                found.append(page[start : match.end()])
        else:
            if depth == 0:
                start = match.start()
            depth += 1
    return found
