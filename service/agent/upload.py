"""Send what waits in the spool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from service.agent.client import AccessRefusedError, RequestRefusedError, ServiceClient, ServiceUnreachableError
from service.agent.spool import Spool, SpooledUpload


@dataclass
class UploadOutcome:
    """What became of the spool: answers of what was sent, reasons of what was refused, what still waits and why."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waiting: int = 0
    why_waiting: str = ""


def upload_spool(
    spool: Spool, client: ServiceClient, within_s: float, say: Callable[[str], None], most: int | None = None
) -> UploadOutcome:
    """Send every waiting result, oldest first; each leaves the spool only once it is answered.

    A refused result does not hold up the others. Without access, or once the service has been out of reach for
    ``within_s``, the rest keeps waiting.
    """
    outcome = UploadOutcome()
    for number, upload in enumerate(spool.waiting()):
        if most is not None and number >= most:
            break
        try:
            answer = client.request_until_answered("POST", upload.path, upload.body, key=upload.key, within_s=within_s)
        except RequestRefusedError as error:
            spool.refused(upload, str(error))
            outcome.refused.append(f"{upload.what}: {error}")
            say(f"refused: {upload.what}: {error}")
            continue
        except (AccessRefusedError, ServiceUnreachableError) as error:
            outcome.why_waiting = str(error)
            break
        spool.sent(upload, answer)
        outcome.answers.append(answer)
        say(_line(upload, answer))
    outcome.waiting = sum(1 for _ in spool.waiting())
    return outcome


def _line(upload: SpooledUpload, answer: dict[str, Any]) -> str:
    reasons = "; ".join(answer.get("reasons") or [])
    ratios = answer.get("predicted_over_measured") or {}
    compared = ", ".join(f"{name} {value:.2f}" for name, value in ratios.items())
    return " · ".join(
        part
        for part in (
            f"{answer.get('id', upload.path)} {answer.get('status', 'stored')}",
            upload.what,
            f"predicted over measured: {compared}" if compared else "",
            reasons,
        )
        if part
    )
