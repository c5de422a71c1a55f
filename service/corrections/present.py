"""Stored correction set → wire."""

from catalog.correction_rows import CorrectionSetRow, EngineCorrectionRow, EvidenceRow
from service.corrections.tables import CorrectionSetTable
from service.wire.accuracy import AccuracyOut, ConstantOut, EngineAccuracyOut, ErrorOut, SliceOut
from solver.step.constants import CONSTANTS, OWNED, law_of

GROUP = "group:"


def present_accuracy(
    stored: CorrectionSetTable | None, *, device: str | None, engine: str | None, llm: str | None
) -> AccuracyOut:
    if stored is None:
        return AccuracyOut(correction_set=None, made_on=None, engines=[])
    row = CorrectionSetRow.model_validate(stored.content)
    chosen = [c for c in row.corrections if device in (None, c.device) and engine in (None, c.engine)]
    return AccuracyOut(correction_set=row.number, made_on=row.made_on, engines=[_engine(c, llm) for c in chosen])


def _engine(row: EngineCorrectionRow, llm: str | None) -> EngineAccuracyOut:
    evidence = {f"{GROUP}{e.group}": e for e in row.evidence}
    names = list(dict.fromkeys(a.group for a in row.accuracy))
    if llm is not None:
        names = [n for n in names if n in evidence and evidence[n].llm == llm]
    return EngineAccuracyOut(
        device=row.device,
        engine=row.engine,
        versions=row.versions,
        runs=sum(len(e.benchmarks) for e in row.evidence),
        constants=[
            ConstantOut(
                name=name,
                unit=law_of(name).unit,
                value=c.value,
                before=c.prior,
                standard_error_fraction=c.standard_error_fraction,
                taken=c.taken,
            )
            for name, c in row.constants.items()
            if name.partition(OWNED)[0] in CONSTANTS
        ],
        slices=[_slice(name, evidence.get(name), row) for name in names],
    )


def _slice(name: str, evidence: EvidenceRow | None, row: EngineCorrectionRow) -> SliceOut:
    return SliceOut(
        slice=name,
        llm=evidence.llm if evidence else None,
        weights=evidence.weights if evidence else None,
        kv_cache=evidence.kv_cache if evidence else None,
        tensor_parallel=evidence.tensor_parallel if evidence else None,
        pipeline_parallel=evidence.pipeline_parallel if evidence else None,
        benchmarks=evidence.benchmarks if evidence else [],
        errors=[ErrorOut(**a.model_dump(exclude={"group"})) for a in row.accuracy if a.group == name],
    )
