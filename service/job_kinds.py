"""Every kind of job, by name: what a worker knows how to compute."""

from typing import Any

from service.fleets.job import FLEET_JOB
from service.jobs.kind import JobKind
from service.recommendations.job import RECOMMENDATION_JOB
from service.training.job import TRAINING_JOB

KINDS: dict[str, JobKind[Any]] = {kind.name: kind for kind in (RECOMMENDATION_JOB, FLEET_JOB, TRAINING_JOB)}
