"""Fleets of several workloads: bounds and plans from the workloads one by one."""
