"""Which device a filter's word means."""

from sqlmodel import Session

from service.devices.queries import all_devices, device_by_id
from service.wire.device_names import match_device


def device_meant(session: Session, name: str | None) -> str | None:
    """The id that ``name`` means, in any case and by the names drivers and people use ("H100": h100-sxm).

    ``name`` itself where it means none, or more than one.
    """
    if name is None or device_by_id(session, name) is not None:
        return name
    memory = {row.id: row.row.get("memory_gib") for row in all_devices(session)}
    return match_device(name.lower(), memory) or name
