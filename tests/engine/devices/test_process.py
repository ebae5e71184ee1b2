"""Process: settings have the effect that they are for."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
from engine.devices.process import (
    interpreter_effect, memory_effect, tune_interpreter, tune_memory
)
before = memory_effect(), interpreter_effect()
tuned = tune_memory(), tune_memory(), tune_interpreter(), tune_interpreter()
after = memory_effect(), interpreter_effect()
print([check.is_ok for check in (*before, *tuned, *after)])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc has mallopt")
def test_tuning_has_an_effect_that_can_be_checked_and_a_second_call_changes_nothing() -> None:
    """In a process of its own: the settings cannot be taken back."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str([False] * 2 + [True] * 6)
