"""Device row → wire."""

from service.devices.tables import DeviceTable
from service.wire.devices import DeviceOut


def present_device(table: DeviceTable) -> DeviceOut:
    return DeviceOut.model_validate(table.row)
