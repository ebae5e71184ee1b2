"""Options: arguments first, then the environment, then the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import InputError
from ops.options import Options, store_folder, store_url


def test_arguments_win_over_the_environment_and_the_defaults() -> None:
    assert Options.parse([], {}) == Options()
    environment = {"MILLPOND_DEVICES": "cpu:2", "MILLPOND_STORE": "a.db"}
    found = Options.parse(["--store", "b.db", "--models", "x,y"], environment)
    assert found == Options("sqlite:///b.db", "cpu:2", ("x", "y"))


def test_arguments_come_back_from_what_they_are_written_as() -> None:
    options = Options("sqlite:///x.db", "sim:2xV100-16G", ("a", "b"))
    assert Options.parse(options.arguments(), {}) == options


def test_an_unknown_argument_is_one_line() -> None:
    with pytest.raises(InputError, match="unrecognized arguments: --stor"):
        Options.parse(["--stor", "x"], {})


def test_paths_survive_a_change_of_the_working_folder() -> None:
    options = Options("sqlite:///x.db", "auto", ("sample_models", "my/models.py")).absolute()
    assert options.store == f"sqlite:///{Path.cwd()}/x.db"
    assert options.models == ("sample_models", str(Path.cwd() / "my/models.py"))
    assert Options("sqlite:///:memory:").absolute().store == "sqlite:///:memory:"


def test_a_store_may_be_given_as_a_path() -> None:
    assert store_url("runs/a.db") == "sqlite:///runs/a.db"
    assert store_url("postgresql://x/y") == "postgresql://x/y"
    assert store_folder("sqlite:////var/a.db") == Path("/var")
    assert store_folder("sqlite:///:memory:") is None
