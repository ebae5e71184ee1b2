"""API: the launcher's own routes beside the pages - state, one script, reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from engine.errors import EngineError
from engine.snapshot import Snapshot
from ops import runtime
from ops.load_status import LoadStatus
from ops.machine import code_version
from ops.station import Station

REPORT_NAME = re.compile(r"[A-Za-z0-9_-]+\.html")
WEEK = "public, max-age=604800"
SANDBOX = "sandbox allow-scripts"
"""A report's scripts draw its charts; they must not reach the dashboard around it."""
_SCRIPT = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def routes() -> list[Route]:
    """Return the routes that the launcher adds to the server.

    All of them only read. Their handlers are plain functions: the server runs
    those on threads, so that none delays a viewer.
    """
    return [
        Route("/api/status", status),
        Route("/assets/plotly.min.js", plotly_script),
        Route("/reports/{name}", report),
    ]


def status(_: Request) -> Response:
    """Answer with the station's state, its devices and its load, as JSON."""
    phase, message = runtime.state()
    document: dict[str, object] = {
        "state": phase,
        "message": message,
        "version": code_version(),
    }
    try:
        document |= describe(runtime.get())
    except EngineError:
        return JSONResponse(document, 503 if phase == "failed" else 200)
    return JSONResponse(document)


def describe(station: Station) -> dict[str, object]:
    """Return what a monitor wants to know of a running station."""
    snapshot = station.engine.snapshot()
    is_ok, error, _ = station.store.health()
    return {
        "started_ms": station.started_ms,
        "store": station.store_url,
        "store_is_ok": is_ok,
        "store_error": error,
        "policy_version": snapshot.policy_version,
        "devices": _devices(snapshot),
        "models": _models(snapshot),
        "missing": dict(station.missing),
        "load": _load(station.loads.status()),
    }


def plotly_script(_: Request) -> Response:
    """Answer with the chart library of the installed package, so that no network is needed."""
    return FileResponse(_SCRIPT, media_type="text/javascript", headers={"cache-control": WEEK})


def report(request: Request) -> Response:
    """Answer with a notebook's report; names without any path, sandboxed."""
    name = request.path_params["name"]
    try:
        folder = runtime.get().runbooks.folder
    except EngineError as error:
        return JSONResponse({"error": str(error)}, 503)
    path = folder / name
    if not REPORT_NAME.fullmatch(name) or not path.is_file():
        return JSONResponse({"error": f"there is no report {name!r}"}, 404)
    return FileResponse(path, headers={"content-security-policy": SANDBOX})


def _devices(snapshot: Snapshot) -> list[Mapping[str, object]]:
    return [
        {
            "name": device.name,
            "simulated": device.simulated,
            "pool_bytes": device.pool_bytes,
            "free_bytes": device.free_bytes,
            "external_fragmentation": device.external_fragmentation,
            "is_lost": device.is_lost,
        }
        for device in snapshot.memory.devices
    ]


def _models(snapshot: Snapshot) -> list[Mapping[str, object]]:
    return [
        {
            "name": model.name,
            "resident_on": model.resident_on,
            "queued_items": model.queued_items,
            "completed": model.counters.completed,
            "failed": model.counters.failed,
            "refused": model.counters.refused,
        }
        for model in snapshot.models
    ]


def _load(found: LoadStatus | None) -> Mapping[str, object] | None:
    if found is None:
        return None
    return {
        "run_id": found.run_id,
        "target": found.plan.target,
        "is_running": found.is_running,
        **found.summary(),
    }
