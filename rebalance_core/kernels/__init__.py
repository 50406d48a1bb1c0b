"""The replay's answers for many groups at once: numpy over segments, Arrow at both ends."""
