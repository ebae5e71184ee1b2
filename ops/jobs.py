"""Jobs: what happens by the clock and can wait - old samples are forgotten once a day."""

from __future__ import annotations

import logging
from collections.abc import Callable

from apscheduler.schedulers.background import BackgroundScheduler

from engine.errors import StoreError

PRUNE_HOUR = 3  # UTC; a busy hour nowhere that is worth knowing
_LOG = logging.getLogger("millpond.jobs")


class Jobs:
    """Run the daily work on a thread of the scheduler's.

    Jobs live in memory: they are code, and code that was stored would outlive
    its meaning.
    """

    def __init__(self, prune: Callable[[], int]) -> None:
        """Take note of what to do.

        Args:
            prune: Forgets samples that are older than the store keeps them;
                returns how many.
        """
        self._prune = prune
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": 3600},
        )
        self._scheduler.add_job(
            self.prune, "cron", hour=PRUNE_HOUR, id="retention", replace_existing=True
        )

    def start(self) -> None:
        """Begin to watch the clock."""
        self._scheduler.start()

    def close(self) -> None:
        """Stop and wait for a job under way; idempotent."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def prune(self) -> None:
        """Forget old samples now."""
        try:
            _LOG.info("retention: %d rows forgotten", self._prune())
        except StoreError as error:
            _LOG.warning("retention: %s", error)
