"""Small random tests say the same thing every time; a found case becomes a test."""

from hypothesis import settings

RANDOM = settings(max_examples=100, deadline=None, derandomize=True, database=None)
