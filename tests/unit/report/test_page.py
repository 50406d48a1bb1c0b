"""The page as a whole: complete, well formed, escaped, always the same bytes."""

import re
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.outcome import audit_outcome
from rebalance_core.model.verdicts import SEVERITIES, WORST_FIRST
from rebalance_core.report.audit_report import (
    TABLES_OF_GROUPS,
    AuditReport,
    GroupBalance,
    GroupTimeline,
    Previous,
    audit_report,
)
from rebalance_core.report.group_table import GroupRow
from rebalance_core.report.page import SENTENCES, render_page
from rebalance_core.report.server_table import SERVERS_ON_PAGE, UP, ServerRow
from rebalance_core.report.tonight import (
    DIFFERENCES_ON_PAGE,
    HAPPENINGS_ON_PAGE,
    GroupDifference,
    Happening,
    NightDifference,
    Tonight,
)
from rebalance_core.report.visible import visible
from tests.tree import TREE
from tests.unit.report.audit_reports import (
    FROM,
    HOSTILE,
    HOUR,
    Reader,
    busy_report,
    finding,
    hostile_report,
    queue,
    report,
    svgs,
)

REPORTS = {"empty": report, "busy": busy_report, "hostile": hostile_report}


@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_the_page_and_its_pictures_are_well_formed(make: Callable[[], AuditReport]) -> None:
    page = render_page(make())
    Reader(page)
    drawings = svgs(page)
    assert len(drawings) == len(re.findall(r"<svg\b", page)) - len(
        re.findall(r'<svg width="(?:258|116)"', page)  # the names of queues, inside a drawing
    )
    for drawing in drawings:
        ET.fromstring(drawing)


@pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
def test_nothing_is_fetched_and_one_script_runs(make: Callable[[], AuditReport]) -> None:
    page = render_page(make())
    reader = Reader(page)
    for tag, attributes in reader.tags:
        assert tag not in {"link", "img", "iframe", "object", "image", "use", "base"}
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    policy = [a["content"] for _, a in reader.tags if a.get("http-equiv")]
    scripts = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    assert policy == [
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    ]
    assert not re.search(r"url\((?!#)|@import", page)


def test_rules_are_links_where_a_site_has_their_pages() -> None:
    page = render_page(busy_report())
    linked = render_page(replace(busy_report(), rules_url="https://docs.example/rules"))
    rules = set(busy_report().rules)
    hrefs = [attributes.get("href") or "" for _, attributes in Reader(linked).tags]
    outside = {href for href in hrefs if href and not href.startswith("#")}
    assert outside == {f"https://docs.example/rules/{rule_id}/" for rule_id in rules}
    assert re.sub(r'<a href="https://[^"]*">(.*?)</a>', r"\1", linked) == page


def cells(page: str, table: str) -> list[list[str]]:
    """The texts of a table's cells, by row of its body."""
    (body,) = re.findall(f"<table {table}>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    rows = [re.findall("<td.*?>(.*?)</td>", row, re.DOTALL) for row in body.split("<tr>")[1:]]
    return [[" ".join(re.sub("<.*?>", " ", cell).split()) for cell in row] for row in rows]


def test_the_first_table_has_the_sentence_and_what_to_do() -> None:
    page = render_page(busy_report())
    first = 'class="glance" id="at-a-glance"'
    assert re.findall("<table.*?>", page)[0] == f"<table {first}>"
    (orphaned,) = cells(page, first)
    assert orphaned[:4] == ["ERROR", "a queue has no owner Do: Start a consumer.", "g1", "1"]
    assert "ORPHANED_QUEUE" not in "".join(orphaned)
    unshown = render_page(replace(busy_report(), findings=()))
    assert [row[1] for row in cells(unshown, first)] == ["Never settles."]


def test_the_first_table_quotes_findings_that_are_about_no_group() -> None:
    found = [finding("R", summary=f"{n} is missing", remedy=f"Copy {n}.") for n in "ab"]
    of_groups = [
        finding("S", "ERROR", consumer_group=name, summary=f"{name} stands")
        for name in ("g1", "g2")
    ]
    page = render_page(report(findings=(*found, *of_groups)))
    quoted = [row[1] for row in cells(page, 'class="glance" id="at-a-glance"')]
    assert quoted == ["a is missing b is missing Do: Copy a. Copy b.", "g1 stands"]


def test_what_needs_no_action_is_folded_below_what_does() -> None:
    page = render_page(busy_report())
    ((flapping, *_),) = [cells(page, 'class="glance" id="for-information"')]
    assert flapping[:2] == ["INFO", "came back"]
    folded = page.index('<details class="info"><summary>4 findings for information (INFO)')
    assert page.index('id="at-a-glance"') < folded < page.index('id="for-information"')


def test_the_health_of_the_groups_is_counted_the_worst_first() -> None:
    words = ("OK", "UNREAD", "OK", "UNKNOWN")
    rows = tuple(GroupRow("", f"g{at}", "EQUAL", health=word) for at, word in enumerate(words))
    own = GroupRow("", "TOOLS_CONSUMER", "OFFLINE", built_in=True, health="OFFLINE")
    page = render_page(replace(busy_report(), group_rows=(*rows, own)))
    (shown,) = re.findall('<ul class="health">(.*?)</ul>', page, re.DOTALL)
    lines = [" ".join(re.sub("<.*?>", " ", line).split()) for line in shown.split("<li")[1:]]
    assert [line.partition("> ")[2] for line in lines] == [
        "1 UNREAD no member reads some queues",
        "1 UNKNOWN the files do not show this",
        "2 OK each queue has a member that reads it, and commits move",
    ]


def test_a_new_finding_names_its_group_and_its_times_do_not_break() -> None:
    since = finding(summary="<no> owner since 2026-11-21 00:00:00Z.", consumer_group="g1")
    page = render_page(replace(busy_report(), previous=Previous(FROM, (since,))))
    (line,) = re.findall('<ul class="brief">(.*?)</ul>', page, re.DOTALL)
    assert "<bdi>g1</bdi></a>" in line
    assert "&lt;no&gt; owner since <time>2026-11-21 00:00:00Z</time>." in line
    assert line.index("&lt;no&gt;") < line.index("<code")  # the sentence comes first


def test_servers_have_rows() -> None:
    page = render_page(busy_report())
    assert cells(page, 'class="servers"') == [
        ["broker-a broker", "DOWN since 11-21 00:01:01", "–", "–", "–", "11-21 00:00:00", "5.3.3"],
        ["broker-b broker", "up", "3", "1,204", "11-21 06:00:00", "11-21 06:00:00", "–"],
    ]
    many = tuple(ServerRow("", f"b{number}", "broker", UP) for number in range(2_000))
    page = render_page(replace(busy_report(), servers=many))
    assert len(cells(page, 'class="servers"')) == SERVERS_ON_PAGE
    assert "and 1,900 more servers" in page


def section(page: str, name: str) -> str:
    """The text of a section, without tags."""
    (found,) = re.findall(f'<section id="{name}">(.*?)</section>', page, re.DOTALL)
    return " ".join(unescape(re.sub("<.*?>", " ", found)).split())


def test_what_happened_tonight_and_what_differs() -> None:
    page = render_page(busy_report())
    assert section(page, "tonight") == (
        "What happened tonight 2026-11-21 00:00:00Z to 2026-11-21 06:00:00Z "
        "2026-11-21 00:00:00Z broker-a is down "
        "2026-11-21 01:00:00Z g1 Redeploy: 2 joined, 2 left"
    )
    assert cells(page, 'class="differences"') == [["g1", "2 → 3", "4 → 5"]]
    assert "1 group not there before: g2 ." in section(page, "changes")
    (row,) = re.findall('<tr id="group-g1">(.*?)</tr>', page, re.DOTALL)
    assert "11-21 01:00 Redeploy: 2 joined, 2 left" in row
    assert "broker-a is down" not in row


def test_a_quiet_night_and_a_large_one() -> None:
    quiet = render_page(replace(busy_report(), tonight=Tonight(FROM, FROM + HOUR)))
    assert "The files show no change of members" in section(quiet, "tonight")
    happenings = tuple(
        Happening("", f"g{number}", FROM + number, f"number {number};", 5 - (number == 777))
        for number in range(4_000)
    )
    difference = NightDifference(
        tuple(GroupDifference("", f"g{n}", {"members": ("1", "2")}) for n in range(2_000)),
        tuple(("", f"n{number}") for number in range(2_000)),
    )
    busy = busy_report()
    assert busy.previous is not None
    large = replace(
        busy,
        tonight=Tonight(FROM, FROM + HOUR, happenings, 9_999, 4_000),
        previous=replace(busy.previous, difference=difference),
    )
    page = render_page(large)
    text = section(page, "tonight")
    assert text.count("number ") == HAPPENINGS_ON_PAGE
    assert "number 777;" in text
    assert "3,940 more of these groups, in their rows; 9,999 groups changed" in text
    assert len(cells(page, 'class="differences"')) == DIFFERENCES_ON_PAGE
    assert "and 1,950 more groups" in section(page, "changes")
    assert "n9 and 1990 more" in section(page, "changes")
    assert len(page) < len(render_page(busy)) + 40_000


def test_one_event_of_many_groups_is_one_line() -> None:
    """A topic that all read is scaled out once; each group's own row has it."""
    named = [f"g{number}" for number in range(9)]
    what = "Topics scaled out: queues of t 8 → 12"
    events = [Happening("", name, FROM + HOUR, what, 5) for name in named]
    later = Happening("", "g1", FROM + 2 * HOUR, what, 5)
    shown = report(
        tonight=Tonight(FROM, FROM + 3 * HOUR, (*events, later)),
        group_rows=tuple(GroupRow("", name, "EQUAL") for name in named),
    )
    page = render_page(shown)
    text = section(page, "tonight")
    assert text.count(what) == 2
    assert "g0 , g1 , g2 , g3 , g4 , g5 and 3 more Topics scaled out" in text
    assert "more of these groups" not in text
    assert section(page, "groups").count(what) == 10


def test_hostile_names_are_text_and_can_be_written() -> None:
    page = render_page(hostile_report())
    page.encode("utf-8")
    text = Reader(page).text
    for name in HOSTILE:
        assert visible(name) in text, ascii(name)
    assert not set(page) & {"\u202e", "\u200f", "\x00", "\x1b", "\x7f", "\x85", "\r"}


def test_equal_reports_give_equal_bytes() -> None:
    one, other = busy_report(), busy_report()
    turned = replace(
        other,
        counts=dict(reversed(list(other.counts.items()))),
        rules=dict(reversed(list(other.rules.items()))),
        findings=tuple(
            replace(f, evidence=dict(reversed(list(f.evidence.items())))) for f in other.findings
        ),
    )
    assert turned == one
    assert render_page(turned) == render_page(one)


def test_equal_bytes_whatever_the_hash_seed() -> None:
    code = (
        "import hashlib; from tests.unit.report.audit_reports import busy_report, hostile_report\n"
        "from rebalance_core.report.page import render_page\n"
        "for n in busy_report(), hostile_report():\n"
        "    print(hashlib.sha256(render_page(n).encode()).hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=TREE,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_every_finding_is_on_the_page_or_counted() -> None:
    found = tuple(
        finding(f"R{at % 3}", ("ERROR", "WARNING", "INFO")[at % 3], summary=f"finding no. {at};")
        for at in range(90)
    )
    shown = report(findings=found, more={"R1": 12, "R9": 5}, counts={"ERROR": 30})
    text = Reader(render_page(shown)).text
    for at in range(90):  # the first of each rule stand in the first table, too
        assert text.count(f"finding no. {at};") == 1 + (at < 3 * SENTENCES)
    assert text.count(f"and {30 - SENTENCES} more findings") == 3  # below those in that table
    assert "20 more findings of this rule" in text  # folded, but there
    assert "12 more findings of this rule are not on this page" in text
    assert "42 findings" in text
    assert "5 more findings of this rule are not on this page" in text


def test_what_follows_from_a_finding_stands_below_it() -> None:
    cause = finding("TWINS", summary="two processes", fingerprint="t", consumer_group="g")
    found = (
        finding("LOST", summary="a queue is lost", fingerprint="l", caused_by="t"),
        cause,
        finding("LOST", summary="its cause is not here", fingerprint="m", caused_by="x"),
    )
    shown = report(findings=found, counts={"ERROR": 3}, causes={"ERROR": 2})
    page = render_page(shown)
    assert "3 ERROR of 2 causes" in page
    page = page[page.index('<section class="rule"') :]
    section = page[page.index("two processes") :]
    assert section.index("1 finding follows from it") < section.index("a queue is lost")
    assert section.index("a queue is lost") < section.index("</details>")
    assert page.count("a queue is lost") == page.count("its cause is not here") == 1


def test_a_group_s_name_unfolds_to_what_its_health_rests_on() -> None:
    found = (
        finding("BROKER_DOWN", "INFO", consumer_group="g", summary="b is down"),
        finding("FALLS_BACK", "INFO", consumer_group="g"),
    )
    page = render_page(report(findings=found, group_rows=(GroupRow("", "g", "EQUAL"),)))
    row = page[page.index('id="group-g"') :]
    row = row[: row.index("</tr>")]
    assert "BROKER_<wbr>DOWN" in row
    assert "FALLS" not in row


def test_rules_that_found_nothing_are_not_explained() -> None:
    runs = {"c": AuditRun(0, 1)}
    found: Any = {"cluster": "c", "rule_id": "R", "severity": "INFO", "accepted": None}
    outcome = audit_outcome([found | {"fingerprint": "f", "caused_by": None}], [], runs, "ERROR")
    rules = {"R": "fired", "S": "did not"}
    tables: Any = dict.fromkeys(TABLES_OF_GROUPS, ())
    shown = audit_report("c", outcome.record(), rules, (), (), (), tables, None, (), 2)
    assert shown.rules == {"R": "fired"}


def test_accepted_findings_stand_apart_with_their_reason() -> None:
    page = render_page(busy_report())
    apart = page[page.index('id="accepted"') : page.index('id="timelines"')]
    assert "PAY-1182" in apart
    assert "PAY-1182" not in page.replace(apart, "")
    assert "Known and accepted: 1." in page


def test_times_are_utc_and_iso() -> None:
    page = render_page(busy_report())
    exact = '<time datetime="2026-11-21T00:00:12.345Z">2026-11-21 00:00:12Z</time>'
    assert exact in page
    for _, attributes in Reader(page).tags:
        stamp = attributes.get("datetime")
        assert stamp is None or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp)


def test_what_changed_since_the_previous_run() -> None:
    assert "No previous run given" in Reader(render_page(report())).text
    text = Reader(render_page(busy_report())).text
    assert "1 new, 1 gone, 7 still there" in text
    assert "NEW a queue has no owner" in text
    assert "not looked at" not in text
    text = Reader(render_page(hostile_report())).text
    assert "4 new, 2 gone, 7 still there, 90 not looked at." in text
    assert "Not looked at Open in an earlier run" in " ".join(text.split())


def test_findings_of_several_clusters_are_distinguished() -> None:
    found = tuple(finding("R", consumer_group="g", cluster=name) for name in ("east", "west"))
    pictures = tuple(GroupTimeline("g", (), cluster=name) for name in ("west", "east"))
    rows = tuple(GroupRow(name, "g", "EQUAL") for name in ("east", "west"))
    page = render_page(report(findings=found, timelines=pictures, group_rows=rows))
    for name, at in (("west", 1), ("east", 2)):
        row = page[page.index(f'<tr id="group-g@{name}"') :]
        assert row[row.index("#timeline-") :].startswith(f'#timeline-{at}"')
        place = page[page.index(f"<small>cluster</small> <bdi>{name}</bdi>") :]
        assert place[place.index("#group-") :].startswith(f'#group-g@{name}"')
        assert f"<h3><bdi>{name}</bdi> <bdi>g</bdi>" in page
    assert "<small>cluster</small>" not in render_page(busy_report())


@pytest.mark.parametrize("verdict", ["OK", "FINDINGS", "FAILED", "INCOMPLETE"])
def test_the_verdict_is_a_word_and_a_shape(verdict: str) -> None:
    page = render_page(report(verdict=verdict))
    banner = page[page.index('<section class="verdict') : page.index("</section>")]
    assert f"<h1>{verdict}</h1>" in banner
    assert "<path" in banner


def test_an_empty_window_and_empty_groups_are_drawn() -> None:
    shown = report(
        to_ms=FROM,
        timelines=(GroupTimeline("g", ()), GroupTimeline("h", (queue(0, "c"),))),
        balance=(GroupBalance("g"),),
        previous=Previous(FROM),
    )
    Reader(render_page(shown))


def big_report() -> AuditReport:
    """20 groups of 300 members and 5,000 queues, 500 findings."""
    clients = [f"10.{at % 7}.{at % 250}.{at}@{4711 + at}#DEFAULT" for at in range(300)]
    queues = tuple(
        queue(
            at % 250,
            *(clients[(at // 17 + turn) % 300] for turn in range(6)),
            broker=f"b{at // 250}",
        )
        for at in range(5000)
    )
    found = tuple(
        finding(
            f"RULE_{at % 9}",
            summary=f"orders b1 {at} is held by {clients[at % 300]}, not {clients[at % 299]}.",
            consumer_group=f"giant-{at % 20}",
            topic="orders",
            broker_name="b1",
            queue_id=at % 250,
            client_id=clients[at % 300],
            first_ms=FROM + at,
            evidence={f"evidence_{n}": f"mqadmin/consumerStatus-{at}.txt:{n}" for n in range(5)},
            remedy=f"Compare the subscription of {clients[at % 300]} with the group's.",
        )
        for at in range(500)
    )
    return report(
        findings=found,
        timelines=tuple(GroupTimeline(f"giant-{at}", queues) for at in range(20)),
        balance=tuple(
            GroupBalance(f"giant-{at}", tuple(clients), (17,) * 300, (9,) * 2000)
            for at in range(20)
        ),
    )


def test_a_big_report_stays_small() -> None:
    page = render_page(big_report())
    assert len(page.encode()) < 2_000_000
    assert "queues with the same history share a row" in page


def test_the_page_is_rendered_from_inside_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "rebalance_core.zip"
    builder = [sys.executable, str(TREE / "scripts" / "build_zip.py"), str(archive)]
    subprocess.run(builder, check=True, capture_output=True)
    code = (
        f"import sys; sys.path[:0] = [{str(archive)!r}, {sysconfig.get_path('purelib')!r}]\n"
        "from rebalance_core.report import page\n"
        "from rebalance_core.report.audit_report import AuditReport\n"
        f"assert page.__file__.startswith({str(archive)!r}), page.__file__\n"
        "report = AuditReport('c1', 'FINDINGS', 'ERROR', "
        f"{FROM}, {FROM + 6 * HOUR}, {FROM + 6 * HOUR + 1}, '1.2.3')\n"
        "sys.stdout.buffer.write(page.render_page(report).encode())"
    )
    # -I -S: neither this folder nor the editable install's .pth is on the path
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == render_page(report())


def test_the_order_of_severities_is_the_audit_s() -> None:
    assert tuple(reversed(SEVERITIES)) == WORST_FIRST


def test_a_balance_names_each_member() -> None:
    with pytest.raises(ValueError, match="2 client ids and 1 numbers of queues"):
        GroupBalance("g", ("a", "b"), (1,))
