"""RFC 9457 problem documents, as OpenAPI shows them."""

from pydantic import ConfigDict

from service.wire.quantities import Answer


class ProblemOut(Answer):
    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str


class ProblemTypeOut(Answer):
    """What one ``type`` means."""

    type: str
    status: int
    title: str
    explanation: str
