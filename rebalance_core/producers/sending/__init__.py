"""One send with its retries, and what each failure reports (rocketmq.md §9.3)."""
