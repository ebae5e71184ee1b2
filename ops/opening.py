"""Opening: brings up the parts of a station in order and takes them down in reverse."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.devices.process import tune_interpreter, tune_memory
from engine.drivers.clock import MonotonicClock
from engine.engine import Engine
from engine.errors import InputError
from engine.policy import Policy
from engine.ports import Device, ModelImages
from engine.spec import PipelineSpec
from engine.units import NS_PER_MS
from ops.capacity import Capacity, expected_hz
from ops.first_policy import first_policy
from ops.jobs import Jobs
from ops.loads import Loads
from ops.machine import ROOT, code_version, hardware
from ops.models import Catalog, resolve
from ops.options import store_folder, store_url
from ops.process_memory import ProcessMemory
from ops.recent import Recent
from ops.run_keeper import RunKeeper
from ops.runbooks import Runbooks
from ops.sampler import Sampler
from ops.targets import Target, Targets
from sample_models.cache import cache_folder
from storage import Store

Progress = Callable[[str], None]
Wanted = tuple[str, str, Sequence[str] | Catalog]
"""Store, devices, models: as `Station.open` takes them."""
AUTHOR = "start"


@dataclass(frozen=True, slots=True)
class Opened:
    """Hold the parts of a station."""

    store: Store
    store_url: str
    engine: Engine
    catalog: Catalog
    missing: dict[str, str]
    keeper: RunKeeper
    recent: Recent
    sampler: Sampler
    loads: Loads
    runbooks: Runbooks
    jobs: Jobs
    images: ModelImages
    devices: Sequence[Device]
    process: ProcessMemory

    def close(self, drain_s: float) -> None:
        """Stop what makes work, then the engine, then what keeps; each part all the same."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.store.close)
            stack.callback(self.engine.close, drain_s)
            stack.callback(self.sampler.stop)
            stack.callback(self.jobs.close)
            stack.callback(self.runbooks.close)
            stack.callback(self.loads.close)


@dataclass(frozen=True, slots=True)
class _Base:
    store: Store
    url: str
    engine: Engine
    images: ModelImages
    devices: Sequence[Device]


def open_parts(wanted: Wanted, *, policy: Policy | None, progress: Progress) -> Opened:
    """Open everything, or nothing: what fails closes what was open already."""
    url, devices_text, models = store_url(wanted[0]), wanted[1], wanted[2]
    tune_memory()
    with contextlib.ExitStack() as undo:
        progress(f"opening the store {url}")
        store = Store.open(url)
        undo.callback(store.close)
        catalog = models if isinstance(models, Catalog) else resolve(models)
        images, devices = _open_devices(devices_text)
        specs = [device.spec for device in devices]
        start = first_policy(store.last_policy(), policy, devices=specs)
        engine = Engine(devices, images, policy=start.policy, clock=MonotonicClock())
        undo.callback(engine.close, 0.0)
        _keep_versions(store, engine, reason=start.reason)
        missing = add_models(engine, catalog, progress=progress)
        base = _Base(store, url, engine, images, devices)
        opened = _assemble(base, catalog, missing=missing)
        undo.pop_all()
        undo.callback(opened.close, 0.0)
        opened.sampler.start()
        opened.jobs.start()
        tune_interpreter()
        progress(f"ready: {', '.join(engine.models) or 'no model'}")
        undo.pop_all()
    return opened


def _open_devices(text: str) -> tuple[ModelImages, list[Device]]:
    # torch takes seconds to import, which nobody who only reads the store should wait for
    from engine.devices.discover import open_devices, parse_devices
    from engine.devices.weights import Images

    images = Images(cache_folder() / "host")
    return images, open_devices(parse_devices(text), images)


def _keep_versions(store: Store, engine: Engine, *, reason: str) -> None:
    """Store the version that the engine starts under, if it is new, and all later ones."""

    def keep(policy: Policy, *, author: str, reason: str) -> None:
        at_ms = (engine.start_wall_ns + engine.clock.now_ns()) // NS_PER_MS
        store.save_policy(policy, author=author, reason=reason, at_ms=at_ms)

    if reason:
        keep(engine.policy, author=AUTHOR, reason=reason)
    engine.store_versions_with(keep)


def add_models(engine: Engine, catalog: Catalog, *, progress: Progress) -> dict[str, str]:
    """Build the models one by one; return why those that cannot be used are missing."""
    missing: dict[str, str] = {}
    for number, spec in enumerate(catalog.models, 1):
        if spec.missing:
            missing[spec.name] = spec.missing
            continue
        progress(f"building {spec.name} ({number} of {len(catalog.models)})")
        try:
            engine.add_model(spec)
        except InputError as error:
            missing[spec.name] = str(error)
            progress(str(error))
    for pipeline in catalog.pipelines:
        sentence = pipeline.missing or _try_pipeline(engine, pipeline)
        if sentence:
            missing[pipeline.name] = sentence
    return missing


def _try_pipeline(engine: Engine, pipeline: PipelineSpec) -> str:
    """Offer a pipeline; return why it cannot be offered, "" if it is."""
    try:
        engine.add_pipeline(pipeline)
    except InputError as error:
        return str(error)
    return ""


def _assemble(base: _Base, catalog: Catalog, *, missing: dict[str, str]) -> Opened:
    """Put the parts around an engine and its store together; starts none of them."""
    store, engine, images = base.store, base.engine, base.images
    found = engine.snapshot().memory.devices
    keeper = RunKeeper(store, engine, hardware=hardware(found), code_version=code_version())
    recent = Recent()

    def expected(target: Target) -> float:
        known = (images[name].profiles for name in target.models)
        profiles = {own[0].key.model: own[0] for own in known if own}
        high = engine.policy.model(target.models[0]).high
        return expected_hz(profiles, high=high, devices=len(found))

    capacity = Capacity(engine.clock, clients=2 * len(found), expected=expected)
    folder = store_folder(base.url) or Path(tempfile.gettempdir(), f"millpond-{os.getpid()}")
    return Opened(
        store=store,
        store_url=base.url,
        engine=engine,
        catalog=catalog,
        missing=missing,
        keeper=keeper,
        recent=recent,
        sampler=Sampler(engine, store, recent=recent),
        loads=Loads(engine, Targets(engine, missing), keeper=keeper, capacity=capacity),
        runbooks=Runbooks(
            ROOT / "notebooks", folder / "reports", keeper=keeper, now_ms=keeper.now_ms
        ),
        jobs=Jobs(lambda: store.prune(keeper.now_ms())),
        images=images,
        devices=base.devices,
        process=ProcessMemory(engine.snapshot()),
    )
