"""The channels of ``owners.toml``: their webhooks and the JSON bodies that these accept."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, cast

from rebalance_core.audit.known_issues import TomlTable
from rebalance_core.contracts.bundled_files import bundled
from rebalance_core.model.errors import did_you_mean, unknown_keys

CHANNEL_KEYS = ("name", "webhook", "body")
BODY_TEXTS = ("title", "text")
"""Placeholders in a body, as ``$title`` and ``$text``."""

_SUFFIX = ".json"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel in ``owners.toml``.

    Attributes:
        name: the name that owners use for it.
        webhook: the environment variable that contains the URL.
        body: a JSON object whose strings contain the placeholders `BODY_TEXTS`.
    """

    name: str
    webhook: str
    body: str

    def body_of(self, title: str, text: str) -> Any:
        """Return the body with its placeholders filled in."""
        values = {"title": title, "text": text}
        return _mapped(json.loads(self.body), lambda part: Template(part).substitute(values))


def bundled_bodies() -> dict[str, str]:
    """Return the bodies that come with the package, by name."""
    return {
        name.removesuffix(_SUFFIX): file.read_text("utf-8")
        for name, file in bundled("webhooks").items()
    }


def channels_of(
    entries: Sequence[tuple[str, TomlTable]], named: Collection[str]
) -> tuple[tuple[Channel, ...], list[str]]:
    """Return the channels in ``[[channel]]`` tables, and the mistakes in them.

    Args:
        entries: the tables, each with its position in the file.
        named: the channels that owners name.
    """
    bodies = bundled_bodies()
    channels: dict[str, Channel] = {}
    mistakes = []
    for where, entry in entries:
        wrong = list(_mistakes(entry, bodies, named))
        texts = cast("Mapping[str, str]", entry)  # unless wrong
        if not wrong and texts["name"] in channels:
            wrong = [f"channel {texts['name']} has two entries"]
        mistakes += [f"{where}: {text}" for text in wrong]
        if not wrong:
            body = bodies.get(texts["body"], texts["body"])
            channels[texts["name"]] = Channel(texts["name"], texts["webhook"], body)
    return tuple(channels.values()), mistakes


def _mistakes(entry: TomlTable, bodies: Collection[str], named: Collection[str]) -> Iterator[str]:
    yield from (text for _, text in unknown_keys(entry, CHANNEL_KEYS))
    texts = {name: value for name, value in entry.items() if isinstance(value, str)}
    for name in CHANNEL_KEYS:
        if not texts.get(name, "").strip():
            yield f"{name} is missing or not a text"
    if "name" in texts and texts["name"] not in named:
        near = did_you_mean(texts["name"], sorted(named))
        yield f"no [[owner]] has the channel {texts['name']}{near}"
    if "webhook" in texts and _VARIABLE.fullmatch(texts["webhook"]) is None:
        yield "webhook: write the name of an environment variable that contains the URL, not a URL"
    if "body" in texts and texts["body"] not in bodies:
        yield from _mistakes_of_body(texts["body"], bodies)


def _mistakes_of_body(body: str, bodies: Collection[str]) -> Iterator[str]:
    if not body.lstrip().startswith("{"):
        near = did_you_mean(body, sorted(bodies))
        yield f"body: neither {', '.join(sorted(bodies))} nor a JSON object{near}"
        return
    parts: list[Template] = []
    try:
        content = json.loads(body)
        json.dumps(content, ensure_ascii=False).encode()
        _mapped(content, lambda part: parts.append(Template(part)))
    except (ValueError, RecursionError) as error:
        yield f"body: not JSON: {error}"
        return
    if not all(part.is_valid() for part in parts):
        yield "body: a $ without a name; write $$ for a dollar sign"
        return
    used = {name for part in parts for name in part.get_identifiers()}
    if unknown := sorted(used - set(BODY_TEXTS)):
        yield f"body: ${unknown[0]} is unknown; valid are $title and $text"
    if "text" not in used:
        yield "body: none of its texts contains $text, so it would name no finding"


def _mapped(value: object, change: Callable[[str], object]) -> object:
    """Return the JSON value with ``change`` applied to each text except keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(part, change) for part in cast("list[object]", value)]
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return {name: _mapped(part, change) for name, part in parts.items()}
    return value
