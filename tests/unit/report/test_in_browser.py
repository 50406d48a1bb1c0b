"""The page in a headless Chromium: filter, sort, anchors, dark, narrow, large."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_core.report.audit_report import AuditReport
from rebalance_core.report.group_table import GroupRow
from rebalance_core.report.page import render_page
from tests.browser import CHROMIUM, Browser, browser
from tests.unit.report.audit_reports import FROM, busy_report, finding, hostile_report

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: apt install chromium"
)

NAMES = "[...document.querySelector('.sortable').tBodies[0].rows].filter(r => !r.hidden)"
SHOWN = f"{NAMES}.map(r => r.querySelector('bdi').textContent)"
LARGE = 2_000


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


def three_groups() -> AuditReport:
    rows = (
        GroupRow("", "pay", "DIFFERS", members=12, queues=8, behind=1_500, moved=3, errors=2),
        GroupRow("", "g1", "UNKNOWN", "NO_DUMP", "mqadmin consumerProgress", 2, 16, 90, 40, FROM),
        GroupRow("", "%RETRY% and #", "EQUAL", members=3, queues=4, moved=0),
        GroupRow("", "TOOLS_CONSUMER", "OFFLINE", built_in=True),
    )
    return replace(busy_report(), group_rows=rows)


def opened(tab: Browser, folder: Path, report: AuditReport, fragment: str = "") -> Path:
    path = folder / "report.html"
    path.write_text(render_page(report), "utf-8")
    tab.call("Emulation.setEmulatedMedia", features=[])
    tab.call("Emulation.clearDeviceMetricsOverride")
    tab.open(path.as_uri() + fragment)
    return path


def test_nothing_is_asked_for_and_nothing_is_complained_of(tab: Browser, tmp_path: Path) -> None:
    for report in (three_groups(), hostile_report(), AuditReport("c", "OK", "ERROR", 0, 1, 2, "3")):
        path = opened(tab, tmp_path, report)
        assert tab.requests() == [path.as_uri()]
        assert tab.complaints() == []


def test_the_table_is_filtered_by_any_word_of_a_row(tab: Browser, tmp_path: Path) -> None:
    opened(tab, tmp_path, three_groups())
    assert tab.run(SHOWN) == ["pay", "g1", "%RETRY% and #"]
    assert tab.run("document.querySelector('[role=status]').textContent") == "3 of 3"
    for words, names in (("no_d", ["g1"]), ("equal retry", ["%RETRY% and #"]), ("nobody", [])):
        tab.run(
            "{ const i = document.querySelector('.filter input');"
            f" i.value = '{words}'; i.dispatchEvent(new Event('input')); }}"
        )
        assert tab.run(SHOWN) == names
    assert tab.run("document.querySelector('[role=status]').textContent") == "0 of 3"


def test_a_column_is_sorted_by_numbers_one_way_and_the_other(tab: Browser, tmp_path: Path) -> None:
    opened(tab, tmp_path, three_groups())
    tab.run(click("unread"))  # the most first, unknown last
    assert tab.run(SHOWN) == ["pay", "g1", "%RETRY% and #"]
    tab.run(click("unread"))
    assert tab.run(SHOWN) == ["%RETRY% and #", "g1", "pay"]
    tab.run(click("group"))
    assert tab.run(SHOWN) == ["%RETRY% and #", "g1", "pay"]
    tab.run(click("members"))
    assert tab.run(SHOWN) == ["pay", "%RETRY% and #", "g1"]
    assert tab.run("document.querySelectorAll('[aria-sort]').length") == 1


def test_columns_of_words_and_of_findings_are_sorted_by_what_they_mean(
    tab: Browser, tmp_path: Path
) -> None:
    rows = (
        GroupRow("", "fine", "EQUAL", health="OK", warnings=12),
        GroupRow("", "bad", "UNKNOWN", health="UNREAD", errors=1_200, warnings=3),
        GroupRow("", "slow", "DIFFERS", health="BEHIND", errors=20),
    )
    opened(tab, tmp_path, replace(busy_report(), group_rows=rows))
    tab.run(click("health"))  # the worst first, not by the alphabet
    assert tab.run(SHOWN) == ["bad", "slow", "fine"]
    tab.run(click("findings"))
    assert tab.run(SHOWN) == ["bad", "slow", "fine"]
    tab.run(click("findings"))
    assert tab.run(SHOWN) == ["fine", "slow", "bad"]


def click(column: str) -> str:
    """The script that sorts by the column of this name."""
    heads = "[...document.querySelectorAll('.sortable th button')]"
    return f"{heads}.find(b => b.textContent === '{column}').click()"


def test_a_column_stands_below_its_name(tab: Browser, tmp_path: Path) -> None:
    opened(tab, tmp_path, three_groups())
    sides = tab.run(
        "(() => { const t = document.querySelector('.sortable');"
        " const side = e => getComputedStyle(e).textAlign.replace('start', 'left');"
        " return [...t.tHead.rows[0].cells].map((h, i) =>"
        " [h.textContent, side(h), side(t.tBodies[0].rows[0].cells[i])]); })()"
    )
    numbers = {"members", "queues", "unread", "moved"}
    for name, head, cell in sides:
        assert head == cell == ("right" if name in numbers else "left"), name


def test_an_anchor_opens_its_group(tab: Browser, tmp_path: Path) -> None:
    opened(tab, tmp_path, three_groups(), "#group-g1")
    at = "document.querySelector('.sortable :target')"
    assert tab.run(f"{at}.querySelector('details').open") is True
    assert tab.run(f"{at}.getBoundingClientRect().top < innerHeight") is True
    link = tab.run("document.querySelector('.sortable details a').getAttribute('href')")
    assert tab.run(f"document.querySelector('{link}').className") == "finding"
    tab.run("location.hash = '#group-%25RETRY%25_and_%23'")
    assert "=" in tab.run(f"{at}.textContent")


def test_all_is_there_to_read_without_the_script(tab: Browser, tmp_path: Path) -> None:
    path = opened(tab, tmp_path, three_groups())
    page, scripts = re.subn(r"<script>.*</script>", "", path.read_text("utf-8"), flags=re.DOTALL)
    assert scripts == 1
    path.write_text(page, "utf-8")
    tab.open(path.as_uri())
    assert tab.run("document.querySelector('.filter').hidden") is True
    assert tab.run("document.querySelectorAll('.sortable tbody tr').length") == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_paper(tab: Browser, tmp_path: Path, scheme: str) -> None:
    opened(tab, tmp_path, three_groups())
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.call("Emulation.setEmulatedMedia", features=wanted)
    colours = tab.run(
        "['h1', '.quiet', 'a', 'td', '.when', 'summary', 'bdi', '.zero', '.plot text'].map(s => {"
        " const e = document.querySelector(s), c = getComputedStyle(e);"
        " let p = e; while (p && getComputedStyle(p).backgroundColor === 'rgba(0, 0, 0, 0)')"
        "   p = p.parentElement;"
        " const ink = e.closest('svg') && e.tagName === 'text' ? c.fill : c.color;"
        " const turned = e.closest('svg') && getComputedStyle(e.closest('svg')).filter !== 'none';"
        " if (turned) return [s, `rgb(${ink.match(/[0-9]+/g).map(n => 255 - n)})`,"
        "   getComputedStyle(document.body).backgroundColor];"
        " return [s, ink, p ? getComputedStyle(p).backgroundColor : 'rgb(255, 255, 255)']; })"
    )
    for selector, ink, paper in colours:
        assert contrast(ink, paper) >= 4.5, (scheme, selector, ink, paper)
    turned = (
        "['.split', '.figures .key'].map(s => getComputedStyle(document.querySelector(s)).filter)"
    )
    bar, key = tab.run(turned)
    assert bar == key  # the same colours
    assert (key != "none") == (scheme == "dark")
    papers = {selector: paper for selector, _, paper in colours}
    assert (luminance(papers["td"]) < 0.1) == (scheme == "dark")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it, of ``rgb(r, g, b)``."""
    parts = [int(float(part)) / 255 for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


NARROW = {"width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": False}


def test_nothing_is_wider_than_a_narrow_window(tab: Browser, tmp_path: Path) -> None:
    opened(tab, tmp_path, wordy_report())
    tab.call("Emulation.setDeviceMetricsOverride", **NARROW)
    assert tab.run("document.documentElement.scrollWidth") <= 500
    for table in ("#at-a-glance", ".servers", ".sortable"):
        assert tab.run(f"document.querySelector('{table}').scrollWidth") <= 476, table


@pytest.mark.parametrize("width", [500, 1280])
def test_words_of_the_table_of_groups_do_not_break(
    tab: Browser, tmp_path: Path, width: int
) -> None:
    opened(tab, tmp_path, wordy_report())
    tab.call("Emulation.setDeviceMetricsOverride", **(NARROW | {"width": width}))
    lines = tab.run(
        "[...document.querySelectorAll('.sortable td:nth-child(2), .sortable td:nth-child(8)')]"
        ".map(e => { const r = document.createRange(); r.selectNodeContents(e);"
        " return [e.textContent, new Set([...r.getClientRects()].map(l => l.top)).size]; })"
    )
    assert {text for text, _ in lines} >= {"UNREAD =", "STALLED ~", "1,204\xa0WARNING"}
    assert max(count for text, count in lines if ", " not in text) == 1


def wordy_report() -> AuditReport:
    """Long names and words, as clusters have them, and a finding that others follow from."""
    names = ("GID_order-settlement_consumer", "svc-06", "audit-writer")
    rows = (
        GroupRow("", names[0], "UNKNOWN", "NO_DUMP", "mqadmin", 3, 22, 1_234_567, 78, FROM),
        GroupRow("", names[1], "EQUAL", health="UNREAD", behind=28, errors=4, warnings=1),
        GroupRow("", names[2], "UNSTABLE", health="STALLED", behind=0, warnings=1_204),
    )
    cause = finding(
        "INGEST_TOPIC_CHANGE_NOT_LOGGED_AND_MORE_WORDS",
        summary="2 processes share the client id 172.17.0.2@GID_order-settlement_consumer#4711.",
        consumer_group=names[0],
        first_ms=FROM,
        fingerprint="cause",
    )
    below = replace(cause, rule_id="ORPHAN_QUEUES", fingerprint="below", caused_by="cause")
    slow = tuple(replace(row, progress_reason="UNCHANGED", slow_since_ms=FROM) for row in rows)
    return replace(three_groups(), findings=(cause, below), group_rows=slow)


def test_a_print_shows_each_finding_and_repeats_none(tab: Browser, tmp_path: Path) -> None:
    opened(tab, tmp_path, busy_report())
    tab.call("Emulation.setEmulatedMedia", media="print")
    heights = (
        "[...document.querySelectorAll('.finding')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(tab.run(heights)) > 0
    assert tab.run("document.querySelector('.info').getClientRects().length") == 0
    assert tab.run("document.querySelector('.filter').getClientRects().length") == 0
    tab.call("Emulation.setEmulatedMedia", media="")


def test_two_thousand_groups_are_small_and_open_soon(tab: Browser, tmp_path: Path) -> None:
    path = opened(tab, tmp_path, large_report())
    assert path.stat().st_size < 1_000_000
    tab.call("Performance.enable", timeDomain="threadTicks")
    seconds = [opening_seconds(tab, path) for _ in range(3)]
    assert max(seconds) < 2, seconds
    assert len(tab.run(SHOWN)) == LARGE


def opening_seconds(tab: Browser, path: Path) -> float:
    """What the page's thread computes until all is there; a busy machine does not count."""
    before = metrics(tab)
    tab.open(path.as_uri())
    tab.run("document.body.scrollHeight")
    after = metrics(tab)
    spent = after["TaskDuration"] - before["TaskDuration"]
    return spent if spent > 0 else after["TaskDuration"]  # counted anew where the process is


def metrics(tab: Browser) -> dict[str, float]:
    """Chromium's metrics of the page by name, durations in seconds of processor time."""
    return {one["name"]: one["value"] for one in tab.call("Performance.getMetrics")["metrics"]}


def large_report() -> AuditReport:
    """2,000 groups, a third of them UNKNOWN, with 500 findings."""
    names = [f"GID_department-{at % 37}_service-{at}_consumer" for at in range(LARGE)]
    rows = tuple(
        GroupRow(
            "",
            name,
            "UNKNOWN" if at % 3 == 0 else "EQUAL",
            "NO_DUMP" if at % 3 == 0 else "",
            f"mqadmin consumerProgress -g {name} -s true" if at % 3 == 0 else None,
            at % 40,
            at % 300,
            at * 7,
            at * 3,
            FROM + at,
            errors=int(at < 100),
            warnings=at % 2,
        )
        for at, name in enumerate(names)
    )
    found = tuple(
        finding(
            f"RULE_OF_{at % 9}",
            summary=f"orders broker-b {at} is held by 10.0.0.{at % 250}@{at}#DEFAULT.",
            consumer_group=names[at],
            topic="orders",
            first_ms=FROM + at,
            evidence={"queues": f"broker-b:{at}", "seen_by": f"mqadmin/consumerStatus-{at}.txt:3"},
            remedy="Restart the client named, or let it rebalance.",
        )
        for at in range(500)
    )
    return replace(busy_report(), group_rows=rows, findings=found)


@pytest.mark.parametrize(("width", "shown"), [(500, "narrow"), (1280, "wide")])
def test_a_timeline_fits_its_window(tab: Browser, tmp_path: Path, width: int, shown: str) -> None:
    opened(tab, tmp_path, busy_report())
    tab.call("Emulation.setDeviceMetricsOverride", **(NARROW | {"width": width}))
    drawn = tab.run(
        "[...document.querySelectorAll('.plot > svg')].map(e => [e.classList[1],"
        " e.getBoundingClientRect()]).filter(p => p[1].width).map(p => [p[0], p[1].right])"
    )
    assert {name for name, _ in drawn} == {shown}
    assert max(right for _, right in drawn) <= width
    wider = "[...document.querySelectorAll('.plot')].some(e => e.scrollWidth > e.clientWidth)"
    assert tab.run(wider) is False
