"""Dumps as copies, terminals and editors tear them, drawn from one number; what an audit then says.

No damaged row is evidence of absence: a finding above INFO on a group, or a verdict of OFFLINE,
DIFFERS or EQUAL, that the whole collection does not have is a failure.
"""

import random
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from rebalance_core.model.verdicts import DIFFERS, EQUAL, ERROR, OFFLINE, WARNING
from tests.recordings.audited import audit_folder, audited
from tests.recordings.tables import DATA, Tables

Draw = random.Random
RECORDINGS = (
    "join-leave",
    "pathologies",
    "strategies",
    "orderly",
    "no-notices",
    "shared-later",
    "go-java",
    "scale-out-4.9",
    "pop",
)
NOISE_BEFORE = (
    "[root@host-1 ~]# sh bin/mqadmin consumerConnection -g x",
    "+ sh mqadmin",
    "Last login: today",
    "bash-4.2$ mqadmin",
    "spawn ssh host-1",
    "Warning: Permanently added 'h' to the list",
)
NOISE_AFTER = (
    "[root@host-1 ~]# exit",
    "logout",
    "real\t0m1.546s\nuser\t0m2.1s\nsys\t0m0.2s",
    "$ ",
    "Connection to host-1 closed.",
    "command took 1.5 s",
    "Done.",
)


def squeezed(text: str, rng: Draw) -> str:
    """As ``tr -s ' '`` leaves it."""
    return re.sub(" +", " ", text)


def tabbed(text: str, rng: Draw) -> str:
    """As a spreadsheet or an editor leaves it."""
    return re.sub("  +", "\t", text)


def trimmed(text: str, rng: Draw) -> str:
    """Blanks at the ends of lines are gone."""
    return re.sub("(?m) +$", "", text)


def indented(text: str, rng: Draw) -> str:
    """As a text is quoted."""
    return re.sub("(?m)^(?=.)", " " * rng.randint(1, 8), text)


def crlf(text: str, rng: Draw) -> str:
    """Copied in text mode, once or twice."""
    return text.replace("\n", rng.choice(("\r\n", "\r\r\n")))


def wrapped(text: str, rng: Draw) -> str:
    """Copied from a terminal, whose columns end lines."""
    width = rng.choice((80, 100, 120, 132, 160, 200, rng.randint(60, 260)))
    lines = [
        line[n : n + width] for line in text.split("\n") for n in range(0, len(line) or 1, width)
    ]
    wrapped_text = "\n".join(lines)
    return trimmed(wrapped_text, rng) if rng.random() < 0.3 else wrapped_text


def noisy(text: str, rng: Draw) -> str:
    """With what a shell says around it."""
    return f"{rng.choice(NOISE_BEFORE)}\n{text.rstrip()}\n{rng.choice(NOISE_AFTER)}\n"


def _at_a_line(text: str, rng: Draw, change: Callable[[str, int], str]) -> str:
    lines = text.split("\n")
    long = [n for n, line in enumerate(lines) if len(line.strip()) > 8]
    if long:
        number = rng.choice(long)
        lines[number] = change(lines[number], rng.randint(1, len(lines[number]) - 1))
    return "\n".join(lines)


def line_cut(text: str, rng: Draw) -> str:
    """The rest of a line is lost."""
    return _at_a_line(text, rng, lambda line, at: line[:at])


def line_begun_late(text: str, rng: Draw) -> str:
    """The beginning of a line is lost."""
    return _at_a_line(text, rng, lambda line, at: line[at:])


def line_broken(text: str, rng: Draw) -> str:
    """A line ends in its middle and goes on in the next one."""
    return _at_a_line(text, rng, lambda line, at: f"{line[:at]}\n{line[at:]}")


def middle_lost(text: str, rng: Draw) -> str:
    """Characters inside a line are lost."""
    gap = rng.randint(1, 30)
    return _at_a_line(text, rng, lambda line, at: line[:at] + line[at + gap :])


def lines_joined(text: str, rng: Draw) -> str:
    """The end of a line is lost: two became one."""
    lines = text.split("\n")
    number = rng.randrange(max(1, len(lines) - 1))
    return "\n".join([*lines[:number], "".join(lines[number : number + 2]), *lines[number + 2 :]])


def end_lost(text: str, rng: Draw) -> str:
    """All from somewhere on is lost."""
    return text[: rng.randint(0, len(text))]


def broken_bytes(text: str, rng: Draw) -> str:
    """Some characters are none."""
    at = rng.randrange(max(1, len(text)))
    return text[:at] + rng.choice(("\x00", "\ufffd", "\x1b")) * rng.randint(1, 5) + text[at + 1 :]


WHOLE = (squeezed, tabbed, indented, crlf, noisy)
"""Of what they leave every row can be read."""
TORN = (
    trimmed,
    wrapped,
    line_cut,
    line_begun_late,
    line_broken,
    middle_lost,
    lines_joined,
    end_lost,
    broken_bytes,
)
COMMANDS = (
    "consumerConnection",
    "consumerProgress",
    "consumerStatus",
    "topicRoute",
    "topicStatus",
    "clusterList",
)


def trial(seed: int, folder: Path) -> tuple[str, list[str]]:
    """Damage the dumps of a recording; what was done, and what is wrong with its audit.

    Args:
        seed: draws everything.
        folder: gets the collection; it is not there.
    """
    rng = random.Random(f"torn {seed}")
    recording = rng.choice(RECORDINGS)
    shutil.copytree(DATA / recording / "collection", folder)
    command = rng.choice((*COMMANDS, ""))
    kinds = rng.choices((*WHOLE, *TORN), k=rng.choice((1, 1, 2)))
    share = rng.choice((0.1, 0.5, 1.0))
    dumps = sorted(p for p in (folder / "mqadmin").rglob("*.txt") if command in p.as_posix())
    chosen = [path for path in dumps if rng.random() < share]
    for path in chosen:
        text = path.read_text()
        for kind in kinds:
            text = kind(text, rng) if text else text
        path.write_bytes(text.encode("utf-8", "replace"))
    named = " and ".join(kind.__name__ for kind in kinds)
    did = f"SEED={seed} {recording}: {named} in {len(chosen)} of {len(dumps)} {command or 'dumps'}"
    readable = all(kind in WHOLE for kind in kinds)
    return did, [*wrong(audited(recording), audit_folder(folder), readable=readable)]


def wrong(before: Tables, after: Tables, *, readable: bool) -> list[str]:
    """Return what the audit of damaged dumps says that is not so.

    Args:
        before: findings and verdicts of the whole collection.
        after: those of the damaged one.
        readable: every row can be read.
    """
    known = {(row["consumer_group"], row["rule_id"]) for row in before["findings"]}
    loud = [row for row in after["findings"] if row["severity"] in (ERROR, WARNING)]
    found = [
        f"{row['severity']} {row['rule_id']} {row['consumer_group']}: {row['summary']}"
        for row in loud
        if row["consumer_group"] and (row["consumer_group"], row["rule_id"]) not in known
    ]
    was = {row["consumer_group"]: row["verdict"] for row in before["group_verdicts"]}
    for row in after["group_verdicts"]:
        group, verdict = row["consumer_group"], row["verdict"]
        false = verdict in (OFFLINE, DIFFERS, EQUAL) or readable
        if group not in was:
            found.append(f"{group} is no group")
        elif verdict != was[group] and false:
            found.append(f"{group} is {verdict}, not {was[group]}: {row['reason']}")
    if readable:
        now = {(row["consumer_group"], row["rule_id"]) for row in loud if row["consumer_group"]}
        lost = {
            (row["consumer_group"], row["rule_id"])
            for row in before["findings"]
            if row["severity"] in (ERROR, WARNING) and row["consumer_group"]
        } - now
        found += [f"{rule} of {group} is not found any more" for group, rule in sorted(lost)]
    return found


def main(trials: int, first: int = 1000) -> None:
    """Run trials and print those that failed."""
    failed = 0
    for seed in range(first, first + trials):
        with TemporaryDirectory() as folder:
            did, found = trial(seed, Path(folder) / "collection")
        failed += bool(found)
        if found:
            print("\n    ".join([did, *found]))
    print(f"{trials} trials, {failed} failed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
