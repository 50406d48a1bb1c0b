"""RocketMQ's single decisions, one per file: pure functions of plain values, per version."""
