"""Station: engine, store, sampler, loads and runbooks as the one object that callers hold."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from engine.drivers.pipelines import Pipeline
from engine.engine import Engine
from engine.load.plan import LoadPlan
from engine.policy import Policy
from engine.ports import Telemetry
from engine.profile import Profile
from engine.spec import ModelSpec
from ops.at_exit import CLOSER
from ops.loads import Loads
from ops.models import Catalog
from ops.opening import Opened, open_parts
from ops.options import DEVICES, MODELS, STORE
from ops.process_memory import ProcessMemory
from ops.recent import Recent
from ops.runbooks import Runbooks
from ops.time_machine import TimeMachine
from storage import Store
from storage.exports import export_run
from storage.samples import RunState

Format = Literal["csv", "parquet", "json"]
DRAIN_S = 5.0
_LOG = logging.getLogger("millpond.station")


class Station:
    """Serve models, and keep what happened.

        with Station.open() as station:
            y = station.engine.infer("digit_reader", x)

    Attributes:
        engine: Takes requests; decides where and when they run.
        store: What is kept: series, decisions, policy versions, runs.
        recent: The last 15 minutes in memory.
        loads: Puts load on the engine.
        runbooks: Runs notebooks.
        models: All that were named, those that are missing included.
        missing: Name of a model or pipeline that cannot be used here, to why and
            what to do.
        store_url: Where the store is.
        started_ms: Wall time of the start, milliseconds since the epoch.
    """

    def __init__(self, opened: Opened) -> None:
        """Take over what was opened; `Station.open` is the way in."""
        self._opened = opened
        self._is_closed = False
        self.engine: Engine = opened.engine
        self.store: Store = opened.store
        self.recent: Recent = opened.recent
        self.loads: Loads = opened.loads
        self.runbooks: Runbooks = opened.runbooks
        self.models: tuple[ModelSpec, ...] = opened.catalog.models
        self.missing: Mapping[str, str] = opened.missing
        self.store_url: str = opened.store_url
        self.started_ms: int = opened.keeper.now_ms()
        CLOSER.add(self)

    @classmethod
    def open(
        cls,
        *,
        store: str = STORE,
        devices: str = DEVICES,
        models: Sequence[str] | Catalog = MODELS,
        policy: Policy | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Open a station: the store first, then devices and models, then the sampler.

        A model that cannot be built here is listed in `missing`; everything
        else works.

        Args:
            store: URL or path; made where there is none.
            devices: `auto`, `cpu:2`, `cpu:2x1GiB`, `cuda:0,1`, `sim:8xV100-16G`.
            models: Modules, files or folders with MODELS and PIPELINES, or what
                `ops.models.resolve` made of them.
            policy: To start under; None: the store's last version, else the defaults.
            progress: Called with a line of text for every step that takes time;
                what it raises ends the opening.

        Raises:
            InputError: A device or module that is not there.
            StoreError: The store cannot be read, or another process owns it.
        """
        wanted = (store, devices, models)
        return cls(open_parts(wanted, policy=policy, progress=progress or _LOG.info))

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Return the pipelines that can be asked, by name."""
        return self.engine.pipelines

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Return the models' sizes and latency as known: why a batch may be no larger."""
        images = self._opened.images
        return tuple(found for name in self.engine.models for found in images[name].profiles)

    @property
    def process(self) -> ProcessMemory:
        """Return what the whole process holds, from the station's start on."""
        return self._opened.process

    @property
    def time_machine(self) -> TimeMachine:
        """Return earlier states of the memory, rebuilt from the store."""
        return TimeMachine(self.store)

    def telemetry(self) -> dict[str, Telemetry]:
        """Return what drivers say of their cards now, by device; CPUs say nothing."""
        asked = ((d.spec.name, d.telemetry()) for d in self._opened.devices)
        return {name: found for name, found in asked if found is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show where it keeps things and what it serves."""
        names = ", ".join(self.engine.models)
        return f"Station({self.store_url}, models: {names}, missing: {len(self.missing)})"

    def apply(self, change: Policy, *, author: str, reason: str, expected_version: int) -> int:
        """Put a policy in force; see `Engine.apply`. Charts show a mark from then on.

        Returns:
            The new version.

        Raises:
            PolicyError: Somebody else applied a version meanwhile, or a part is wrong.
            StoreError: The version could not be stored; nothing has changed.
        """
        return self.engine.apply(
            change, author=author, reason=reason, expected_version=expected_version
        )

    @contextlib.contextmanager
    def record(
        self, load: LoadPlan | None = None, *, name: str = "", author: str = "operator"
    ) -> Iterator[int]:
        """Keep what happens inside the `with` as a run; yields its id.

        With a load, that load runs: to its end if it has one, else until the
        block is left.

        Raises:
            InputError: Another load is running, or the plan's target is unknown.
            StoreError: The run cannot be stored.
        """
        if load is not None:
            with self._loaded(load, name=name, author=author) as run_id:
                yield run_id
            return
        keeper = self._opened.keeper
        run_id = keeper.open_run(name or "recording", kind="manual", load="", author=author)
        state: RunState = "failed"
        try:
            yield run_id
            state = "finished"
        finally:
            self.flush()
            keeper.close_run(run_id, state=state, summary={})

    def export(
        self,
        run_id: int,
        folder: str | Path,
        *,
        format: Format,  # noqa: A002  as DESIGN calls it
    ) -> tuple[Path, ...]:
        """Write a run's series, decisions and policies to files; return their paths.

        Args:
            folder: Made where there is none.

        Raises:
            StoreError: There is no such run, or it cannot be written.
        """
        self.store.flush()
        return export_run(self.store, run_id, folder=Path(folder), file_format=format)

    def flush(self) -> None:
        """Sample now and wait until all of it is stored."""
        self._opened.sampler.tick()
        self.store.flush()

    def close(self) -> None:
        """Stop load and notebooks, let requests finish for a while, store all; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        CLOSER.remove(self)
        self._opened.close(DRAIN_S)
        _LOG.info("millpond stopped cleanly")

    @contextlib.contextmanager
    def _loaded(self, load: LoadPlan, *, name: str, author: str) -> Iterator[int]:
        run_id = self.loads.start(load, author=author, name=name)
        try:
            yield run_id
            if load.seconds is not None:
                self.loads.wait()
        finally:
            self.loads.stop()
            self.flush()
