"""Pages of the site that docs/ does not have: a page per audit rule, the Python API, the README.

A hook of MkDocs, which mkdocs.yml names; `make site` runs it. A rule's page is always
``rules/RULE_ID/``: ids never change their meaning. Links from docs/ to other files lead to the page
made of the file, or to the repository where ``repo_url`` of mkdocs.yml names it; otherwise they
become text.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rebalance_core
from rebalance_core.audit.causes import LINKS
from rebalance_core.audit.registry import ALL_RULES
from rebalance_core.ingest.rows import FINDING_IDS

TREE = Path(__file__).resolve().parent.parent
PAGE_OF = {
    "README.md": "readme.md",
    "README.zh.md": "readme.zh.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files at the root of the tree that are pages of the site, too."""
LINK = re.compile(
    r"(!?\[(?:[^\[\]]|\[[^\[\]]*\]\([^)]*\))*\])"  # its text, possibly an image
    r"\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)"
)
TARGET = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
RULE_ROW = re.compile(r"^\| `([A-Z_]+)` (INFO|WARNING|ERROR) \|", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those of docs/."""
    from mkdocs.structure.files import File

    for name, page in PAGE_OF.items():
        text = (TREE / name).read_text("utf-8")
        files.append(File.generated(config, page, content=at_docs(text)))
    for rule_id, text in rule_pages().items():
        files.append(File.generated(config, f"rules/{rule_id}.md", content=text))
    files.append(File.generated(config, "api.md", content=api_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return the page with links that the site can follow."""
    if page.file.src_uri == "audit-rules.md":
        markdown = RULE_ROW.sub(r"| [`\1`](rules/\1.md) \2 |", markdown)
    here = posixpath.dirname(page.file.src_uri)
    parts = FENCED.split(markdown)
    for index in range(0, len(parts), 2):
        parts[index] = LINK.sub(
            lambda link: followed(link, here, str(config.repo_url or "")), parts[index]
        )
    return "".join(parts)


def at_docs(text: str) -> str:
    """Return a page of the root of the tree as if it stood in docs/."""
    return TARGET.sub(lambda link: f"]({posixpath.relpath(link[1], 'docs')}", text)


def followed(link: re.Match[str], here: str, repository: str) -> str:
    """Return a link of a page in the folder ``here`` of docs/ as the site needs it."""
    text, path, anchor = link[1], link[2], link[3] or ""
    target = posixpath.normpath(posixpath.join("docs", here, path))
    if target.startswith("docs/") or target == "docs":
        if (TREE / target).is_dir():
            return text[1:-1]
        return link[0]
    if target in PAGE_OF:
        return f"{text}({posixpath.relpath(PAGE_OF[target], here or '.')}{anchor})"
    return f"{text}({repository}/blob/main/{target})" if repository else text[1:-1]


def rule_pages() -> dict[str, str]:
    """Return the page of each finding, by its id."""
    pages = {rule_id: "\n".join(_ingest_page(rule_id)) for rule_id in FINDING_IDS}
    return pages | {rule.rule_id: "\n".join(_rule_page(rule)) for rule in ALL_RULES}


def _ingest_page(rule_id: str) -> Iterator[str]:
    yield f"# {rule_id}\n\n{FINDING_IDS[rule_id]}\n"
    yield "A finding of `ingest`, on the files of the collection: "
    yield "[what ingest did not understand](../ingest.md#what-ingest-did-not-understand).\n"


def _rule_page(rule: Any) -> Iterator[str]:
    yield f"# {rule.rule_id}\n\n{rule.meaning}\n"
    yield f"**Severity**: {rule.severity}, by default.\n"
    yield f"**What to do**: {rule.remedy}\n"
    yield f"**Evidence**: {rule.seen_by}.\n"
    if rule.reads:
        yield "Where the files leave one of these open at the time of a finding, it is INFO:\n"
        yield from (f"* {subject.name}: {subject.meaning}" for subject in rule.reads)
        yield ""
    if rule.by_owners:
        yield "Silent on groups whose strategy is unknown.\n"
    if rule.state:
        yield "Once the state has ended, the finding is INFO, with when it ended.\n"
    causes = sorted({link.cause for link in LINKS if link.consequence == rule.rule_id})
    effects = sorted({link.consequence for link in LINKS if link.cause == rule.rule_id})
    for words, ids in (("May follow from", causes), ("May cause", effects)):
        if ids:
            yield f"{words}: {', '.join(f'[{one}]({one}.md)' for one in ids)}.\n"
    yield "[All rules](../audit-rules.md#rules)\n"


def api_page() -> str:
    """Return the page of the top-level names, whose docstrings mkdocstrings reads."""
    lines = ["# Python API", "", "The names of `import rebalance_core`.", ""]
    for name in sorted(set(rebalance_core.__all__) - {"__version__"}, key=str.lower):
        value = getattr(rebalance_core, name)
        lines += [f"::: {value.__module__}.{value.__qualname__}", ""]
    return "\n".join(lines)
