"""Trials: a collection, a kind of damage and what came of it, all drawn from one number."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.degraded import judge
from tests.degraded.damages import DAMAGES, HARMLESS, KINDS
from tests.degraded.files import Files, subjects
from tests.recordings.tables import DATA
from tests.recordings.test_audit import PLANTED

FAILURES = (
    "false ERROR",
    "false WARNING",
    "other rule",
    "false OFFLINE",
    "false EQUAL",
    "false DIFFERS",
    "invented",
    "move outside",
    "move unsure",
    "start outside",
    "blind green",
    "green",
    "not mute",
    "changed",
    "ended",
    "crashed",
)
CASES, FAULTS = 0.2, 0.35
"""Shares of trials: with a case; with a recording in which faults are planted."""
FORM_ALONE, SECOND_DAMAGE, FORM_TOO = 0.2, 0.25, 0.15
"""Shares of drawn trials: of the form alone; with a second damage; of those with damages: in
another form, too."""
SHOWN = 4
"""So many failures of a kind are printed."""

Chosen = tuple[int, str | None, str | None]
"""Seed, subject and kind of a trial."""


@dataclass
class Trial:
    """One damaged collection and what is wrong with its audit.

    Attributes:
        seed: draws everything.
        subject: the recording or case.
        kinds: of damage.
        chosen: the kind that was asked for; None: drawn.
        did: what was done, in words.
        wrong: (kind of failure, what).
        unknown: groups that were judged in the whole collection and are UNKNOWN.
        judged: groups that were judged in the whole collection.
        planted: (group, named) of planted faults whose evidence is left.
        refused: whether the collection was refused (4).
        true: findings above INFO of the whole collection; 0 of one that was refused.
        loud: how many of them survive.
    """

    seed: int
    subject: str
    kinds: tuple[str, ...]
    chosen: str | None = None
    did: list[str] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    unknown: int = 0
    judged: int = 0
    planted: list[tuple[str, bool]] = field(default_factory=list)
    refused: bool = False
    true: int = 0
    loud: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether anything is wrong that must not be."""
        return any(kind in FAILURES for kind, _ in self.wrong)

    def described(self) -> str:
        """What was done and what is wrong, with what replays it."""
        chosen = f" --kind '{self.chosen}'" if self.chosen else ""
        head = f"--seed {self.seed}{chosen}: {self.subject}: {'; '.join(self.did)}"
        lines = [head]
        for kind in dict.fromkeys(kind for kind, _ in self.wrong):
            of_kind = [text for failed, text in self.wrong if failed == kind]
            lines += (f"    {kind}: {text}" for text in of_kind[:SHOWN])
            if of_kind[SHOWN:]:
                lines.append(f"    {kind}: {len(of_kind) - SHOWN} more")
        return "\n".join(lines)


def run_chosen(chosen: Chosen) -> Trial:
    """Run a trial in a worker, which imports this module and no ``__main__``.

    One that raises has failed, and the lane goes on.
    """
    try:
        return run_trial(*chosen)
    except Exception as error:
        seed, subject, kind = chosen
        wrong = [("crashed", f"{type(error).__name__}: {error}")]
        return Trial(seed, subject or "", (kind,) if kind else (), kind, wrong=wrong)


def run_trial(seed: int, subject: str | None = None, kind: str | None = None) -> Trial:
    """Damage a collection and judge what the audit says of it.

    Args:
        seed: draws what is damaged and how.
        subject: the recording or case; None: drawn among those that can be damaged so.
        kind: of damage, once; None: drawn.
    """
    begun = time.process_time()
    rng = random.Random(f"degraded {seed} {kind or ''}")
    kinds = [kind] if kind else [*_drawn_kinds(rng, seed)]
    for name in [subject] if subject else _drawn_subjects(rng):
        files = Files.of(name)
        did = {one: KINDS[one](files, random.Random(f"{seed} {one}")) for one in kinds}
        said = [f"{one}: {what}" for one, what in did.items() if what]
        if said:
            trial = Trial(seed, name, tuple(one for one in kinds if did[one]), kind, said)
            _judge(trial, files, judge.audit(files))
            trial.seconds = time.process_time() - begun
            return trial
    raise ValueError(f"{subject or 'no recording or case'} has nothing for {', '.join(kinds)}")


def _drawn_subjects(rng: random.Random) -> list[str]:
    """All subjects, those of the drawn sort first.

    Ranked, so that a new recording takes some seeds, and leaves the others what they had.
    """
    sort, key = rng.random(), rng.random()

    def rank(name: str) -> tuple[bool, float]:
        case, faults = not (DATA / name).exists(), name in PLANTED
        wanted = case if sort < CASES else faults if sort < CASES + FAULTS else not case
        return not wanted, _rank(key, name)

    return sorted(subjects(), key=rank)


def _drawn_kinds(rng: random.Random, seed: int) -> Iterator[str]:
    """One of the damages or forms, at times a second damage, at times another form too."""
    damages, forms = (sorted(k, key=lambda one: _rank(seed, one)) for k in (DAMAGES, HARMLESS))
    if rng.random() < FORM_ALONE:
        yield forms[0]
        return
    yield from damages[: 1 + (rng.random() < SECOND_DAMAGE)]
    if rng.random() < FORM_TOO:
        yield forms[0]


def _rank(seed: float, name: str) -> float:
    return random.Random(f"{seed} {name}").random()


def _judge(trial: Trial, files: Files, audited: judge.Audited) -> None:
    harmless = set(trial.kinds) <= HARMLESS.keys()
    before = judge.whole(files.name)
    online = [group for group, row in before.verdicts.items() if row["verdict"] in judge.JUDGED]
    trial.judged = len(online)
    if audited.exit_code not in (0, 3):
        trial.refused = audited.exit_code == 4
        trial.unknown = trial.judged
        if not trial.refused or harmless:
            trial.wrong.append(("ended", f"{audited.exit_code}: {audited.tables['said']}"))
        return
    found = [*judge.undeserved(files, audited)]
    for kind, judged in JUDGES.items():
        found += ((kind, text) for text in judged(files, audited))
    unlike, compared = ("changed", judge.changed) if harmless else ("not mute", judge.mute)
    found += ((unlike, text) for text in compared(files, audited))
    trial.wrong += found
    for group in online:
        now = audited.verdicts.get(group, {}).get("verdict", "UNKNOWN")
        trial.unknown += now in ("UNKNOWN", "OFFLINE")
    trial.true, trial.loud = judge.loudness(files, audited)
    trial.planted += judge.planted(files, audited, PLANTED.get(files.name, {}))


JUDGES: dict[str, Callable[[Files, judge.Audited], Iterator[str]]] = {
    "false OFFLINE": judge.falsely_offline,
    "false EQUAL": judge.falsely_equal,
    "false DIFFERS": judge.falsely_differing,
    "invented": judge.invented,
    "move outside": judge.moves_outside,
    "move unsure": judge.moves_unsure,
    "start outside": judge.starts_outside,
    "blind green": judge.blind,
    "green": judge.incomplete_and_green,
}
"""By kind of failure: what of it an audit has."""


def table(trials: Iterable[Trial]) -> str:
    """Every kind of damage, with what came of its trials; with 0 where none ran.

    UNKNOWN: share of the groups judged in the whole collection; loud: share of its true findings
    above INFO that survive, of collections that were not refused.
    """
    rows: dict[str, Counter[str]] = {name: Counter() for name in sorted(KINDS)}
    rows |= {"several kinds": Counter(), "all": Counter()}
    for trial in trials:
        for name in (trial.kinds[0] if len(trial.kinds) == 1 else "several kinds", "all"):
            row = rows[name]
            row["trials"] += 1
            row["failed"] += trial.failed
            row["refused"] += trial.refused
            row["judged"] += trial.judged
            row["UNKNOWN"] += trial.unknown
            row.update(dict.fromkeys({kind for kind, _ in trial.wrong}, 1))
            row["planted"] += len(trial.planted)
            row["named"] += sum(named for _, named in trial.planted)
            row["true"] += trial.true
            row["loud"] += trial.loud
    failures = [name for name in FAILURES if rows["all"][name]]
    names = ("trials", "failed", *failures, "refused", "judged")
    heads = (*names, "UNKNOWN", "planted and named", "true and loud")
    lines = ["| damage | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for kind, row in rows.items():
        fields = [str(row[name]) for name in names]
        fields.append(_share(row["UNKNOWN"], row["judged"]))
        fields.append(f"{row['named']} of {row['planted']}")
        fields.append(f"{_share(row['loud'], row['true'])} of {row['true']}")
        lines.append(f"| {kind} | " + " | ".join(fields) + " |")
    return "\n".join(lines)


def _share(part: int, of: int) -> str:
    return f"{part / of:.0%}" if of else "-"
