"""Targets: what load can be put on - a model or a pipeline - behind one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.engine import Engine
from engine.errors import InputError
from engine.load.generator import Submit
from engine.spec import ModelSpec, PipelineSpec, Sample

FAVOURITE = "ocr"
"""The default target where its weights are there: the one that shows the most."""
FALLBACK = "digit_reader"
"""The default target elsewhere: its weights are committed."""


@dataclass(frozen=True, slots=True)
class Target:
    """Say how to submit to a model or pipeline, with what, and how to judge the answers.

    Attributes:
        models: Those that do the work; more than one for a pipeline.
    """

    name: str
    submit: Submit
    inputs: Callable[[int], Sample]
    score: Callable[[object, object], Mapping[str, float]] | None
    models: tuple[str, ...]


class Targets:
    """Find targets by name on a running engine."""

    def __init__(self, engine: Engine, missing: Mapping[str, str]) -> None:
        """Know the engine, and why models that it lacks are missing."""
        self._engine = engine
        self._missing = missing

    def names(self) -> tuple[str, ...]:
        """Return what can be asked: pipelines first, then models."""
        return (*self._engine.pipelines, *self._engine.models)

    def default(self) -> str:
        """Return the name of the target that the default load is for.

        Raises:
            InputError: There is nothing to put load on.
        """
        names = self.names()
        if not names:
            raise InputError("load: there is no model; start with --models that lists one")
        return next((name for name in (FAVOURITE, FALLBACK) if name in names), names[0])

    def __getitem__(self, name: str) -> Target:
        """Return the target of that name.

        Raises:
            InputError: It is missing here, or there is none of that name.
        """
        if name in self._engine.pipelines:
            return self._pipeline(self._engine.pipelines[name].spec)
        if name in self._engine.models:
            return self._model(self._engine.models[name])
        if name in self._missing:
            raise InputError(f"{name}: {self._missing[name]}")
        known = ", ".join(self.names()) or "none"
        raise InputError(f"{name}: no such model or pipeline; there are {known}")

    def _pipeline(self, spec: PipelineSpec) -> Target:
        pipeline = self._engine.pipelines[spec.name]
        return Target(
            spec.name,
            lambda payload, level, deadline_ms: pipeline.submit(
                payload, priority_class=level, deadline_ms=deadline_ms
            ),
            spec.inputs,
            spec.score,
            spec.models,
        )

    def _model(self, spec: ModelSpec) -> Target:
        engine, name = self._engine, spec.name
        return Target(
            name,
            lambda payload, level, deadline_ms: engine.submit(
                name, payload, priority_class=level, deadline_ms=deadline_ms
            ),
            spec.inputs,
            spec.score,
            (name,),
        )
