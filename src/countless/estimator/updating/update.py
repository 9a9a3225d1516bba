"""The update of a model: train on new rows along with old ones, and add to the exact counts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from countless.data.encoding.recoding import opened
from countless.data.encoding.schema_growth import Growth, conformed, encoded, grown
from countless.data.evidence import evidence_rows
from countless.data.sources.file_formats import with_default_options
from countless.data.sources.fingerprints import digest_of, table_digest
from countless.data.sources.source import Source
from countless.engine.runtimes import Runtimes
from countless.errors import DataError, TrainingError
from countless.estimator.calibration.conformal import Calibration
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import TABLE, LoggingListener
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.salvage import CALIBRATION, salvaged
from countless.estimator.loading import evidence_of
from countless.estimator.updating.relearning import MOST_ROWS, Relearner, RelearningOptions
from countless.estimator.updating.replay import ReplayRows, draw_rows, from_evidence, from_table
from countless.query.rewrites.derivation import derive
from countless.settings import rows_to_keep
from countless.spec import RESMADE, ModelSpec
from countless.store import COLUMNS, EVIDENCE, Sections, StoredRows
from countless.train import require_torch

FROM_MODEL, FROM_FILE = "model", "evidence"  # where old rows come from, unless from a table
DRAWING_SHARE = 0.2  # of the time to train, for drawing old rows
MOST_DRAWN, MOST_STRINGS = 200_000, 20_000  # the most old rows drawn from the model; the same with text


def update(
    estimator: Estimator,
    sections: Sections,
    runtimes: Runtimes,
    rows: Any,
    replay: Any,
    options: RelearningOptions,
    listener: Listener | None,
) -> Estimator:
    """The estimator after learning new rows: :meth:`countless.Estimator.update`."""
    started = time.monotonic()
    _require_trainable(sections)
    listener = listener or LoggingListener()
    schema = estimator.schema
    listener.stage("reading the new rows")
    table_id = table_digest(with_default_options(rows, schema.csv))
    source = conformed(derive(opened(rows, schema), schema.derived), schema)
    digest = digest_of(source.fingerprint())
    if warning := _learned_before(estimator.report, digest, table_id):
        listener.notice(warning)
    growth = grown(schema, source, None if runtimes.counts is None else runtimes.counts.pairs.counts)
    new = encoded(source, growth.schema)
    old, origin = _replayed(growth, estimator, sections, runtimes, replay, options, listener)
    evidence = _evidence(growth, estimator, sections, source, options.seed)
    learner = Relearner(sections, runtimes, estimator.report, growth, new, old, source, options, listener)
    new_sections, training = learner.sections()
    entry = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": new.rows,
        "rows_before": schema.rows,
        "new_codes": growth.new_values,
        "replay": origin,
        "replayed_rows": len(old),
        "digest": digest,
        **training,
    }
    report = {
        **estimator.report,
        "interrupted": training["interrupted"],
        "updates": [*estimator.report.get("updates", ()), entry],
    }
    raw = Estimator(growth.schema, replace(new_sections, rows=evidence), report=report)
    listener.stage("calibrating")
    updated = raw
    with salvaged(CALIBRATION, report, listener):
        updated = raw.calibrated(_calibration(estimator.calibration, raw, source))
    entry["seconds"] = round(time.monotonic() - started, 1)
    return updated


def _learned_before(report: Mapping[str, Any], digest: str, table: str | None) -> str | None:
    """A warning if the model has learned these rows before, in an update or in the fit."""
    advice = "they will count twice: give only rows that are new"
    for entry in report.get("updates", ()):
        if entry.get("digest") == digest:
            return f"the model learned these rows before, in the update of {entry.get('when')}; {advice}"
    if table is not None and report.get(TABLE) == table:
        return f"these rows are the table that the model was fitted on; {advice}"
    return None


def _require_trainable(sections: Sections) -> None:
    """Raise an error, before any work, if the networks cannot be trained."""
    require_torch("updating")
    network = sections.networks.get(COLUMNS)
    if network is not None and (kind := ModelSpec.from_json(network.spec).kind) != RESMADE:
        raise TrainingError(f"a model of kind {kind!r} cannot be updated: fit the whole table again with countless fit")


def _replayed(
    growth: Growth,
    estimator: Estimator,
    sections: Sections,
    runtimes: Runtimes,
    replay: Any,
    options: RelearningOptions,
    listener: Listener,
) -> tuple[ReplayRows, str]:
    """Old rows, and where they come from: by default the evidence rows, or the model if there are none."""
    if replay is None:
        replay = FROM_FILE if EVIDENCE in sections.rows else FROM_MODEL
    if isinstance(replay, str) and replay == FROM_FILE:
        rows = evidence_of(growth.old, sections)
        if rows is None:
            raise DataError(
                "the model file has no evidence rows (fit --evidence): use --replay model, or give the old table"
            )
        return from_evidence(growth, rows), FROM_FILE
    if isinstance(replay, str) and replay == FROM_MODEL:
        listener.stage("drawing old rows from the model")
        most = MOST_STRINGS if growth.schema.texts else MOST_DRAWN
        seconds = options.seconds(estimator.report)
        seconds = None if seconds is None else DRAWING_SHARE * seconds
        return draw_rows(growth, runtimes, min(growth.old.rows, most), seconds, options.seed), FROM_MODEL
    listener.stage("reading old rows")
    return from_table(growth, replay, MOST_ROWS, options.seed), "table"


def _evidence(
    growth: Growth, estimator: Estimator, sections: Sections, new: Source, seed: int
) -> dict[str, StoredRows]:
    """The new evidence rows: a uniform sample of old and ``new`` rows, as large as that of a new fit."""
    rows = evidence_of(growth.old, sections)
    if rows is None:
        return {}
    requested = rows_to_keep(EVIDENCE, estimator.report.get(EVIDENCE, rows.rows))
    count = max(rows.rows, evidence_rows(requested, growth.schema.rows))
    return {EVIDENCE: StoredRows(rows.updated(growth, new, count, seed).arrays(growth.schema))}


def _calibration(before: Calibration, raw: Estimator, new: Source) -> Calibration:
    """The calibration with the same questions: the new rows are added to the counts, and the model answers again."""
    clauses = [query.where for query in before.queries]
    if not all(clauses):
        raise DataError("the model file was stripped, so it has no calibration questions")
    truths = [query.rows + new_count for query, new_count in zip(before.queries, new.counts(clauses), strict=True)]
    return Calibration(tuple(raw.calibration_queries(clauses, truths)), before.level)
