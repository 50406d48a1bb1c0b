"""Names that tools rewrote: addresses hashed or masked, names of files escaped, a group renamed."""

import re
from collections.abc import Callable
from hashlib import md5

from tests.degraded.files import GROUPS, NOTHING, SETTINGS, Draw, Files, dumps_group
from tests.degraded.logs import named

ADDRESS = re.compile(rb"\b(?!127\.|0\.0\.0\.0)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?!\.)")
MASKS = {
    "the start": (re.compile(rb"(?<=@)([^@#\s,\]/]+)#\d+"), rb"\1#xxxx"),
    "the process": (
        re.compile(rb"(\b\d+\.\d+\.\d+\.\d+@)[^@\s,\]/\"]+?(?=\.txt|[\s,\]/\"]|$)"),
        rb"\1xxxx",
    ),
    "half of the address": (
        re.compile(rb"\b(\d{1,3}\.\d{1,3})\.\d{1,3}\.\d{1,3}(?=@)"),
        rb"\1.x.x",
    ),
}
OTHER_NAME = "grp-00"
ESCAPES = {
    "percent": {"@": "%40", "#": "%23"},
    "underscores": {"@": "_", "#": "_"},
    "underscore for @": {"@": "_"},
    "hyphens": {"@": "-", "#": "-"},
}


def pseudonyms(files: Files, rng: Draw) -> str:
    """Each address is its hash, the same in all files and names; their order is another."""
    salt = str(rng.random()).encode()

    def pseudonym(match: re.Match[bytes]) -> bytes:
        digest = md5(salt + match[0], usedforsecurity=False).digest()
        other = b"10.%d.%d.%d" % (digest[0], digest[1], digest[2])
        files.addresses[other.decode()] = match[0].decode()
        return other

    return "addresses" if _rewrite(files, ADDRESS, pseudonym) else NOTHING


def hex_pseudonyms(files: Files, rng: Draw) -> str:
    """Each address is a part of its hash in hex, the same in all files and names."""
    salt = str(rng.random()).encode()

    def pseudonym(match: re.Match[bytes]) -> bytes:
        other = md5(salt + match[0], usedforsecurity=False).hexdigest()[:12]
        files.addresses[other] = match[0].decode()
        return other.encode()

    return "addresses" if _rewrite(files, ADDRESS, pseudonym) else NOTHING


def masked(files: Files, rng: Draw) -> str:
    """A part of each client id is x: ids of several processes may have become equal."""
    what = rng.choice(sorted(MASKS))
    pattern, other = MASKS[what]
    files.ids_lost = _rewrite(files, pattern, lambda match: match.expand(other))
    return what if files.ids_lost else NOTHING


def _rewrite(
    files: Files, pattern: re.Pattern[bytes], other: Callable[[re.Match[bytes]], bytes]
) -> bool:
    before = len(files.taken)
    for path in sorted(files.kept):
        if path == SETTINGS:
            continue
        files.change(path, pattern.sub(other, files.text(path)))
        files.rename(path, pattern.sub(other, path.encode()).decode())
    return len(files.taken) > before


def escaped(files: Files, rng: Draw) -> str:
    """Names of dumps as tools write them that do not take ``@`` and ``#`` in a name."""
    how = rng.choice(sorted(ESCAPES))
    paths = [path for path in files.dumps() if "@" in path or "#" in path]
    if not paths:
        return NOTHING
    for path in paths:
        other = path
        for mark, instead in ESCAPES[how].items():
            other = other.replace(mark, instead)
        files.rename(path, other)
    return f"{how}, {named(paths)}"


def copies(files: Files, rng: Draw) -> str:
    """Dumps twice, as a browser, a desktop or an editor names the second file."""
    form = rng.choice(("{} (1){}", "{} - Copy{}", "{}_1{}", "{}{}~", "{}{}.bak", "Copy of {}{}"))
    paths = [path for path in files.dumps() if path.endswith(".txt")]
    if rng.random() < 0.5:
        paths = rng.sample(paths, min(len(paths), 3))
    for path in paths:
        folder, _, name = path.rpartition("/")
        files.copy(path, f"{folder}/{form.format(name.removesuffix('.txt'), '.txt')}")
    return f"{form.format('x', '.txt')}, {named(paths)}" if paths else NOTHING


def renamed_in_logs(files: Files, rng: Draw) -> str:
    """A redaction tool gave a group another name in logs, and none in dumps and stores."""
    text = files.kept.get(GROUPS, b"").decode()
    groups = set(re.findall(r'"consumer_group": ?"([^"]+)"', text))
    for path in files.dumps():
        found = re.search(r"-consumerProgress-(?!s-|t-)(.+?)\.txt", path)
        groups |= {found[1]} if found else set()
    groups = {group for group in groups if any(dumps_group(path, group) for path in files.kept)}
    if not groups or not files.logs():
        return NOTHING
    group = rng.choice(sorted(groups))
    pattern = re.compile(rb"(?<![\w.-])" + re.escape(group.encode()) + rb"(?![\w-])")
    before = len(files.taken)
    files.strangers.add(OTHER_NAME)
    files.renamed[OTHER_NAME] = group
    for path in files.logs():
        files.change(path, pattern.sub(OTHER_NAME.encode(), files.text(path)))
    return f"{group} is {OTHER_NAME}" if len(files.taken) > before else NOTHING
