"""What a producer remembers of slow and failed brokers (rocketmq.md §9.2)."""
