"""GET /v1/recommendations/{recommendation_id}/deployments: files that start a plan's servers."""

from service.wire.quantities import Answer, Usd


class DeploymentFileOut(Answer):
    path: str
    content: str


class DeploymentNoteOut(Answer):
    """Something the files leave to whoever uses them. ``about``: a variable, a label, or part of the plan."""

    about: str
    text: str


class ReadinessPartOut(Answer):
    """One part of a replica's start, from the fastest to the slowest case in ``source``."""

    part: str
    """``node``: a machine ordered until it runs containers; ``image``; ``weights``; ``engine``: the server's own start."""
    fast_s: float
    """The fastest case, in seconds."""
    slow_s: float
    """The slowest case, in seconds."""
    source: str


class SpareReplicasOut(Answer):
    """Replicas that stand by so that demand may rise as stated while further ones start."""

    replicas: int
    usd_per_hour: Usd
    """What they add to the plan, at the price of its own replicas."""


class ReadinessOut(Answer):
    """How long a further replica of one kind takes until it answers: the sum of its parts, one after another."""

    replicas: str
    """The kind, as the files call it."""
    parts: list[ReadinessPartOut]
    unknown: list[str]
    """Parts of which no figure is known: the sums leave them out."""
    fast_s: float
    """The sum of the fastest cases, in seconds; a least where parts are unknown."""
    slow_s: float | None
    """The sum of the slowest cases, in seconds; null where parts are unknown."""
    scale_to_zero: bool
    """Whether the targets allow the first request to wait for a replica to start."""
    spares: SpareReplicasOut | None
    """Null without ``ramp``, and where parts are unknown."""


class DeploymentOut(Answer):
    """The same plan, catalog and versions give the same bytes. ``check``: a command that says whether it runs as planned."""

    recommendation: str
    target: str
    generator_version: str
    engine_versions: dict[str, str]
    """Whose options the command lines are written with."""
    files: list[DeploymentFileOut]
    notes: list[DeploymentNoteOut]
    readiness: list[ReadinessOut]
    """How long further replicas take to start, by kind."""
    check: str
