"""Trials: a collection, a kind of damage and what came of it, all drawn from one number."""

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.degraded import judge
from tests.degraded.damages import DAMAGES, HARMLESS, files_dropped
from tests.degraded.files import Files, subjects
from tests.recordings.tables import DATA
from tests.recordings.test_audit import PLANTED

FAILURES = ("false ERROR", "false WARNING", "other rule", "false EQUAL", "false DIFFERS",
            "start outside", "green", "not mute", "changed", "ended")  # fmt: skip
CASES, FORM_ALONE, SECOND_DAMAGE, FORM_TOO = 0.2, 0.2, 0.25, 0.15
"""Shares of trials: with a case, not a recording; of its form alone; with a second damage; of those
with damages: in another form, too."""


@dataclass
class Trial:
    """One damaged collection and what is wrong with its audit.

    Attributes:
        seed: draws everything.
        subject: the recording or case.
        kinds: of damage.
        did: what was done, in words.
        wrong: (kind of failure, what).
        unknown: groups that were judged in the whole collection and are UNKNOWN.
        judged: groups that were judged in the whole collection.
        planted: (group, named) of planted faults whose evidence is left.
    """

    seed: int
    subject: str
    kinds: tuple[str, ...]
    did: list[str] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    unknown: int = 0
    judged: int = 0
    planted: list[tuple[str, bool]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether anything is wrong that must not be."""
        return any(kind in FAILURES for kind, _ in self.wrong)

    def told(self) -> str:
        """What was done and what is wrong, with what replays it."""
        head = f"SEED={self.seed} {self.subject}: {'; '.join(self.did)}"
        return "\n".join([head, *(f"    {kind}: {text}" for kind, text in self.wrong)])


def run_trial(seed: int, subject: str | None = None, kind: str | None = None) -> Trial:
    """Damage a collection and judge what the audit says of it.

    Args:
        seed: draws what is damaged and how.
        subject: the recording or case; None: drawn.
        kind: of damage, once; None: drawn.
    """
    begun = time.process_time()
    rng = random.Random(f"degraded {seed}")
    cases = rng.random() < CASES
    names = (name for name in subjects() if (DATA / name).exists() != cases)
    # so that a new recording takes some seeds, and leaves the others what they had
    drawn = max(names, key=lambda name: random.Random(f"{seed} {name}").random())
    files = Files.of(subject or drawn)
    kinds, did = [], []
    harmless = rng.random() < FORM_ALONE
    twice = not harmless and rng.random() < SECOND_DAMAGE
    drawn_kinds = [rng.choice(sorted(HARMLESS if harmless else DAMAGES)) for _ in range(1 + twice)]
    form = random.Random(f"form {seed}")
    if not harmless and form.random() < FORM_TOO:
        drawn_kinds.append(form.choice(sorted(HARMLESS)))
    for drawn_kind in drawn_kinds if kind is None else [kind]:
        did_kind, said = drawn_kind, (HARMLESS | DAMAGES)[drawn_kind](files, rng)
        if not said:
            did_kind, said = "files dropped", files_dropped(files, rng)
        kinds.append(did_kind)
        did.append(f"{did_kind}: {said}")
    trial = Trial(seed, files.name, tuple(kinds), did)
    _judge(trial, files, judge.audit(files))
    trial.seconds = time.process_time() - begun
    return trial


def _judge(trial: Trial, files: Files, audited: judge.Audited) -> None:
    if audited.exit_code not in (0, 3):
        lacks_all = audited.exit_code == 4
        if not lacks_all:
            trial.wrong.append(("ended", f"{audited.exit_code}: {audited.tables['said']}"))
        return
    found = [*judge.undeserved(files, audited)]
    found += (("false EQUAL", text) for text in judge.falsely_equal(files, audited))
    found += (("false DIFFERS", text) for text in judge.falsely_differing(files, audited))
    found += (("start outside", text) for text in judge.starts_outside(files, audited))
    found += (("green", text) for text in judge.incomplete_and_green(files, audited))
    if set(trial.kinds) <= HARMLESS.keys():
        found += (("changed", text) for text in judge.changed(files, audited))
    else:
        found += (("not mute", text) for text in judge.mute(files, audited))
    trial.wrong += found
    for group, row in judge.whole(files.name).verdicts.items():
        if row["verdict"] in judge.JUDGED:
            trial.judged += 1
            now = audited.verdicts.get(group, {}).get("verdict", "UNKNOWN")
            trial.unknown += now in ("UNKNOWN", "OFFLINE")
    trial.planted += judge.planted(files, audited, PLANTED.get(files.name, {}))


def table(trials: Iterable[Trial]) -> str:
    """Failures by kind of damage, groups that became UNKNOWN, planted faults that are named."""
    rows: dict[str, Counter[str]] = {}
    for trial in trials:
        for name in (" + ".join(trial.kinds) if len(trial.kinds) == 1 else "several kinds", "all"):
            row = rows.setdefault(name, Counter())
            row["trials"] += 1
            row["failed"] += trial.failed
            row["judged"] += trial.judged
            row["UNKNOWN"] += trial.unknown
            row.update(dict.fromkeys({kind for kind, _ in trial.wrong}, 1))
            row["planted"] += len(trial.planted)
            row["named"] += sum(named for _, named in trial.planted)
    names = ("trials", "failed", *FAILURES, "judged", "UNKNOWN", "planted", "named")
    lines = ["| damage | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for kind in sorted(rows, key=lambda kind: (kind == "all", kind)):
        lines.append(f"| {kind} | " + " | ".join(str(rows[kind][n]) for n in names) + " |")
    return "\n".join(lines)
