from dataclasses import dataclass
def explain_plan(*a): return None
def explain_infeasible(*a): return None
