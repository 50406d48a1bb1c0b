"""Which packages are mutated, and the tests that must notice."""

UNIT = "tests/unit"
VECTORS = (
    "tests/conformance/test_start_offset.py",
    "tests/conformance/test_upstream_assertions.py",
    "tests/conformance/test_allocation.py",
    "tests/conformance/test_replay.py",
)
KERNELS = (
    f"{UNIT}/kernels/test_small_histories.py",
    f"{UNIT}/kernels/test_segments.py",
    f"{UNIT}/kernels/test_periods.py",
    f"{UNIT}/kernels/test_sharing.py",
    f"{UNIT}/kernels/test_reach_periods.py",
    f"{UNIT}/kernels/test_owners.py",
    f"{UNIT}/kernels/test_listed_owners.py",
    f"{UNIT}/kernels/test_places.py",
    f"{UNIT}/kernels/test_starts.py",
    f"{UNIT}/kernels/test_passed_on_starts.py",
    f"{UNIT}/kernels/test_shared_lows.py",
    f"{UNIT}/kernels/test_codes.py",
    f"{UNIT}/kernels/test_missing_columns.py",
    f"{UNIT}/kernels/test_group_kinds.py",
    f"{UNIT}/kernels/test_recordings_equality.py",
    f"{UNIT}/kernels/test_languages_equality.py",
)
EQUALITY = (f"{UNIT}/kernels/test_equality.py",)  # minutes, so only for what the others let pass

# Stages in their order. Within one, a test that bears the mutated module's name comes first.
PACKAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "rebalance_core/model": (
        (f"{UNIT}/model", f"{UNIT}/protocol", f"{UNIT}/strategies"),
        (f"{UNIT}/replay", *VECTORS),
    ),
    "rebalance_core/protocol": ((f"{UNIT}/protocol", f"{UNIT}/replay", *VECTORS), KERNELS),
    "rebalance_core/strategies": ((f"{UNIT}/strategies", *VECTORS, f"{UNIT}/replay"),),
    "rebalance_core/client": ((f"{UNIT}/client", f"{UNIT}/replay", *VECTORS),),
    "rebalance_core/replay": ((f"{UNIT}/replay", *VECTORS), KERNELS, EQUALITY),
    "rebalance_core/kernels": (KERNELS, EQUALITY),
    "rebalance_core/producers": (
        (f"{UNIT}/producers", "tests/conformance/test_producers.py"),
        (f"{UNIT}/process/test_producers.py",),
    ),
}

# What a mutated tree consists of: all that these tests read.
COPIED = ("rebalance_core", "tests", "conf", "scripts", "pyproject.toml")


def package_of(path: str) -> str:
    """The mutated package in which a file lies."""
    return next(name for name in PACKAGES if path.startswith(f"{name}/"))
