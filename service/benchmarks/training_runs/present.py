"""A stored training run on the wire."""

from service.benchmarks.training_runs.tables import TrainingRunTable
from service.training.inputs import Trained
from service.wire.training_runs import TrainingRunOut


def present_training_run(row: TrainingRunTable, trained: Trained, predicted: float) -> TrainingRunOut:
    return TrainingRunOut.model_validate(
        {
            "id": row.id,
            "link": f"/v1/benchmarks/training-runs/{row.id}",
            "recorded_at": row.recorded_at,
            "status": "accepted" if row.retracted_at is None else "retracted",
            "llm": row.llm,
            "device": row.device,
            "devices": row.run["devices"],
            "method": row.run["method"],
            "precision": row.run["precision"],
            "stack": trained.stack.id,
            "sequence_tokens": trained.run.sequence_tokens,
            "global_batch_sequences": trained.run.global_batch_sequences,
            "layout": row.run["layout"],
            "tokens_per_s_per_device": row.tokens_per_s_per_device,
            "predicted_tokens_per_s_per_device": predicted,
            "error_fraction": predicted / row.tokens_per_s_per_device - 1.0,
            "peak_memory_gib": row.peak_memory_gib,
            "steps": row.steps,
        }
    )
