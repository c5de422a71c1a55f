"""GET /v1/recommendations/{recommendation_id}/deployments: files that start a plan's servers."""

from service.wire.quantities import Answer


class DeploymentFileOut(Answer):
    path: str
    content: str


class DeploymentNoteOut(Answer):
    """Something the files leave to whoever uses them. ``about``: a variable, a label, or part of the plan."""

    about: str
    text: str


class DeploymentOut(Answer):
    """The same plan, catalog and versions give the same bytes. ``check``: a command that says whether it runs as planned."""

    recommendation: str
    target: str
    generator_version: str
    engine_versions: dict[str, str]
    """Whose options the command lines are written with."""
    files: list[DeploymentFileOut]
    notes: list[DeploymentNoteOut]
    check: str
