"""Prefill and decode in pools of their own, beside replicas that do both."""
