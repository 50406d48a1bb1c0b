"""Which packages are mutated, and the tests that must notice, cheap ones first."""

from pathlib import Path

TREE = Path(__file__).resolve().parents[2]

VECTORS = (
    "tests/conformance/test_start_offset.py",
    "tests/conformance/test_upstream_assertions.py",
    "tests/conformance/test_allocation.py",
    "tests/conformance/test_replay.py",
)
UNIT = "tests/unit"
EQUALITY = f"{UNIT}/kernels/test_equality.py"  # minutes, so the last
KERNELS = (f"{UNIT}/kernels/test_small_histories.py", f"{UNIT}/kernels", EQUALITY)

# A package's test that bears the name of the mutated module runs before all of these.
PACKAGES: dict[str, tuple[str, ...]] = {
    "rebalance_core/model": (f"{UNIT}/rules", f"{UNIT}/strategies",
                             f"{UNIT}/replay", *VECTORS, f"{UNIT}/planning"),
    "rebalance_core/rules": (f"{UNIT}/rules", f"{UNIT}/replay", *VECTORS, *KERNELS),
    "rebalance_core/strategies": (f"{UNIT}/strategies", *VECTORS, f"{UNIT}/replay"),
    "rebalance_core/replay": (f"{UNIT}/replay", *VECTORS, *KERNELS),
    "rebalance_core/kernels": KERNELS,
}  # fmt: skip

# What a mutated tree consists of: all that these tests read.
COPIED = ("rebalance_core", "tests", "conf", "scripts", "pyproject.toml")


def package_of(path: str) -> str:
    """The mutated package in which a file lies."""
    return next(name for name in PACKAGES if path.startswith(f"{name}/"))
