"""RocketMQ's text and JSON formats to rows; knows nothing of Spark."""
