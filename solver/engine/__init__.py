"""Continuous batching: how a serving engine turns step times into latencies and throughput."""
