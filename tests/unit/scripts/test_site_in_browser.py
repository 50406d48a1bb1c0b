"""The built site in a headless Chromium: `make test-site` builds it and runs these tests."""

import re
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from rebalance_core.audit.registry import MEANINGS
from rebalance_core.report.page import render_page
from tests.browser import CHROMIUM, Browser, browser
from tests.tree import TREE
from tests.unit.report.audit_reports import finding, report

SITE = TREE / "out/site"
PAGES = ("", "audit-rules/", "rules/ORPHAN_QUEUES/", "api/", "on-call.zh/", "planning/", "readme/")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium on this machine: apt install chromium"
    ),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no site: make site"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_whole(tab: Browser, address: str, page: str, width: int, scheme: str) -> None:
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    tab.call("Emulation.setEmulatedMedia", features=wanted)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    tab.open(address + page)
    assert tab.complaints() == []
    assert {
        url for url in tab.requests() if not url.startswith((address, "data:", "blob:"))
    } == set()
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)") == []
    paper = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (paper != "rgb(255, 255, 255)") == (scheme == "dark"), paper


def test_a_search_finds_the_page_of_a_rule(tab: Browser, address: str) -> None:
    tab.call("Emulation.clearDeviceMetricsOverride")
    tab.open(address)
    tab.run(
        "new Promise(found => { const i = document.querySelector('.md-search__input'); i.focus();"
        " i.value = 'ORPHAN_QUEUES'; i.dispatchEvent(new Event('keyup', {bubbles: true}));"
        " i.dispatchEvent(new Event('input', {bubbles: true})); found(); })"
    )
    links = "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"
    assert any("rules/ORPHAN_QUEUES/" in link for link in waited(tab, links))


def waited(tab: Browser, links: str) -> list[str]:
    """The links of the results as soon as there are any."""
    wait = (
        "new Promise(done => { const look = times => { const l = LINKS;"
        " if (l.length || !times) done(l); else setTimeout(() => look(times - 1), 100); };"
        " look(100); })"
    )
    answer = tab.call(
        "Runtime.evaluate",
        expression=wait.replace("LINKS", links),
        awaitPromise=True,
        returnByValue=True,
    )
    found: list[str] = answer["result"]["value"]
    return found


def test_the_link_of_a_finding_opens_the_page_of_its_rule(
    tab: Browser, address: str, tmp_path: Path
) -> None:
    found = report(findings=(finding("ORPHAN_QUEUES"),), rules_url=f"{address}rules")
    path = tmp_path / "report.html"
    path.write_text(render_page(found), "utf-8")
    tab.open(path.as_uri())
    link = tab.run("document.querySelector('.rule h3 a').href")
    tab.open(link)
    assert tab.run("document.querySelector('h1').firstChild.textContent.trim()") == "ORPHAN_QUEUES"


def test_examples_of_the_api_are_code(tab: Browser, address: str) -> None:
    tab.open(f"{address}api/")
    assert tab.run("document.querySelectorAll('.doc blockquote').length") == 0
    assert tab.run(
        "[...document.querySelectorAll('.doc pre')].some(p => /^>>> /m.test(p.innerText))"
    )


def test_each_link_leads_to_a_page_and_a_place_in_it() -> None:
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > len(MEANINGS)
    lost = []
    for page in pages:
        for link in sorted(set(re.findall(r'(?:href|src)="?([^"\s>]+)', page.read_text("utf-8")))):
            if urlsplit(link).scheme or link.startswith("//") or page.name == "404.html":
                continue
            target, anchor = urldefrag(urljoin(page.as_uri(), link))
            file = Path(unquote(urlsplit(target).path))
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file() or (anchor and unquote(anchor) not in ids_of(file)):
                lost.append(f"{page.relative_to(SITE)}: {link}")
    assert lost == []


@cache
def ids_of(page: Path) -> frozenset[str]:
    """The ids of a page."""
    return frozenset(re.findall(r'\bid="?([^"\s>]+)', page.read_text("utf-8")))
