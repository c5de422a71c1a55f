"""Imports every table once, so that ``SQLModel.metadata`` is complete for migrations."""

from sqlmodel import SQLModel

from service.benchmarks.tables import (
    BenchmarkEventTable,
    BenchmarkTable,
    BenchmarkUploadTable,
    IdempotencyKeyTable,
)
from service.benchmarks.training_runs.tables import TrainingRunTable
from service.catalog_release.tables import CatalogReleaseTable
from service.constants.tables import ConstantTable
from service.corrections.tables import BenchmarkResidualTable, ChangedCellTable, CorrectionSetTable
from service.devices.tables import DeviceTable
from service.energy.tables import EnergyTable
from service.fleets.tables import FleetTable
from service.idempotency.tables import StoredKeyTable
from service.jobs.tables import JobEventTable, JobTable
from service.llms.tables import LlmTable
from service.measurements.tables import AgentTable, DeviceMeasurementTable, LeaseTable, MeasurementTable
from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable, PriceStepTable
from service.providers.tables import ProviderTable
from service.recommendations.tables import RecommendationTable
from service.tco.tables import ComparisonTable
from service.tokens.tables import TokenTable
from service.traces.tables import TraceTable
from service.training.tables import TrainingPlanTable

TABLES: tuple[type[SQLModel], ...] = (
    AgentTable,
    BenchmarkEventTable,
    BenchmarkResidualTable,
    BenchmarkTable,
    BenchmarkUploadTable,
    ChangedCellTable,
    ComparisonTable,
    ConstantTable,
    CorrectionSetTable,
    DeviceMeasurementTable,
    DeviceTable,
    CatalogReleaseTable,
    EnergyTable,
    FleetTable,
    IdempotencyKeyTable,
    JobEventTable,
    JobTable,
    LeaseTable,
    LlmTable,
    MeasurementTable,
    NodeTable,
    OfferTable,
    PriceStepTable,
    ProviderTable,
    RecommendationTable,
    StoredKeyTable,
    TokenTable,
    TraceTable,
    TrainingPlanTable,
    TrainingRunTable,
)
METADATA = SQLModel.metadata
