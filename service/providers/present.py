"""Provider row → wire."""

from service.providers.tables import ProviderTable
from service.wire.providers import ProviderOut


def present_provider(table: ProviderTable) -> ProviderOut:
    return ProviderOut.model_validate(table.row)
