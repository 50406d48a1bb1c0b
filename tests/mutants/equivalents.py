"""Mistakes that no test can notice because they change no answer, and why.

They are in the sample like all others and count as survivors; they are only not run. Each is named
by its file, its line without indent, and what becomes of what.
"""

from tests.mutants.sites import Site

KERNELS = "rebalance_core/kernels"
EQUIVALENT = {
    (f"{KERNELS}/ownership/changes.py", "other = np.full(len(cell), -1, np.int64)", "1", "2"): (
        "every element is overwritten: each row is an ADD or a DROP"
    ),
    (f"{KERNELS}/processes.py", "GONE = -1", "1", "2"): (
        "a state of its own, asked for by name or as negative; the others count from 0"
    ),
    (
        f"{KERNELS}/metrics.py",
        "could = block.cells.readable.take(held) & (still >= 0)",
        ">=",
        ">",
    ): "entry 0 is in the first epoch of all, and what follows an entry is in a later one",
    (f"{KERNELS}/ownership/in_rooms.py", "NO_ROOM = -1", "1", "2"): (
        "a name for no room, written and compared here alone; rooms count from 0"
    ),
    (
        f"{KERNELS}/roster.py",
        "return np.int32 if len(self) <= MOST_NARROW else np.int64",
        "len(self) <= MOST_NARROW",
        "(not (len(self) <= MOST_NARROW))",
    ): "the same numbers in twice the memory; 2^31 entries fit into no test",
    (
        f"{KERNELS}/routes.py",
        "config_of = place_of.reshape(-1)[: len(group)]",
        "1",
        "2",
    ): "numpy takes any negative size for the one that is not given",
    (
        f"{KERNELS}/topic_members.py",
        "self._steps = np.zeros(nodes[-1] + 1, np.int32)",
        "1",
        "2",
    ): ("one more step at the end, which nobody looks at"),
}


def why_equivalent(site: Site) -> str | None:
    """Why no test can notice this mistake; None: some test should."""
    return EQUIVALENT.get((site.path, site.text, site.before, site.after))
