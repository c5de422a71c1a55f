"""Workloads in, plan out."""
