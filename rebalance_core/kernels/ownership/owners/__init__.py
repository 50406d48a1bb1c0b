"""Who of cidAll owns a readable queue: one file per strategy, for many groups at once."""
