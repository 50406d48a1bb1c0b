"""The root of the checkout that the tests belong to."""

from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
