"""The kernels beside RocketMQ's own loop and Kafka's own assignors. Begin with `compare`."""
