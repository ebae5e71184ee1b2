"""Exports: a run with its series and decisions as CSV, Parquet or one JSON file."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import InputError
from engine.metrics import LatencyHistogram
from storage.samples import DeviceSample, ModelSample, RunRecord
from storage.series import HISTOGRAMS
from storage.store import Store

Format = Literal["csv", "parquet", "json"]
Row = Mapping[str, object]
FORMATS: tuple[Format, ...] = ("csv", "parquet", "json")
MAX_DECISIONS = 1_000_000


def export_run(
    store: Store, run_id: int, *, folder: Path, file_format: Format
) -> tuple[Path, ...]:
    """Write a run's files into a folder, which is made if need be, and return their paths.

    Percentiles are written in milliseconds, computed from the histograms.

    Raises:
        InputError: Unknown format.
        StoreError: No such run.
    """
    files = _files(store, run_id, file_format=file_format)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content)
        paths.append(path)
    return tuple(paths)


def export_bytes(store: Store, run_id: int, *, file_format: Format) -> tuple[str, bytes]:
    """Return a run as one file to download: (name, content).

    Several files are put into one ZIP archive.
    """
    files = _files(store, run_id, file_format=file_format)
    if len(files) == 1:
        return next(iter(files.items()))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return f"run-{run_id}-{file_format}.zip", packed.getvalue()


def _files(store: Store, run_id: int, *, file_format: Format) -> dict[str, bytes]:
    if file_format not in FORMATS:
        raise InputError(f"format: found {file_format}, wanted {', '.join(FORMATS)}")
    run = store.run(run_id)
    tables = _tables(store, run)
    stem = f"run-{run_id}"
    if file_format == "json":
        document = {"run": asdict(run), **tables}
        return {f"{stem}.json": json.dumps(document, indent=1).encode()}
    files = {f"{stem}-run.json": json.dumps(asdict(run), indent=1).encode()}
    for name, rows in tables.items():
        content = _csv(rows) if file_format == "csv" else _parquet(rows)
        files[f"{stem}-{name}.{file_format}"] = content
    return files


def _tables(store: Store, run: RunRecord) -> dict[str, list[Row]]:
    """Return all that was stored in the run's time, second by second, not thinned."""
    start_ms = run.started_ms
    end_ms = (run.ended_ms if run.ended_ms is not None else 1 << 62) + 1
    devices = store.device_series(start_ms, end_ms, points=None)
    models = store.model_series(start_ms, end_ms, points=None)
    decisions = store.decisions(start_ms, end_ms, limit=MAX_DECISIONS)
    return {
        "devices": [_device(sample) for sample in devices],
        "models": [_model(sample) for sample in models],
        "decisions": [
            {
                "at_ms": record.at_ms,
                "kind": record.decision.kind.value,
                "reason": record.decision.reason.value,
                "model": record.decision.model,
                "device": record.decision.device,
                "subject": record.decision.subject,
                "numbers": json.dumps(dict(record.decision.numbers)),
            }
            for record in reversed(decisions)
        ],
    }


def _device(sample: DeviceSample) -> Row:
    return {**asdict(sample), "utilisation": sample.utilisation}


def _model(sample: ModelSample) -> Row:
    row = asdict(sample)
    for name in HISTOGRAMS:
        histogram = LatencyHistogram.from_bytes(row.pop(name))
        for share in (50, 95, 99):
            row[f"{name}_p{share}_ms"] = histogram.percentile_ns(share / 100) / 1e6
        row[f"{name}_count"] = histogram.count
    return row


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), content)
    return content.getvalue()
