"""A request as the core sees it, and the table of its state changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.spec import LaneKey


class RequestState(StrEnum):
    """Say where a request is; the last five never change again."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class RequestStep(StrEnum):
    """Name what can happen to a request once it was submitted."""

    TAKE = "take"
    RETURN = "return"
    FINISH = "finish"
    FAIL = "fail"
    REFUSE = "refuse"
    EXPIRE = "expire"
    CANCEL = "cancel"


_W, _R = RequestState.WAITING, RequestState.RUNNING
TRANSITIONS: dict[tuple[RequestState, RequestStep], RequestState] = {
    (_W, RequestStep.TAKE): RequestState.RUNNING,
    (_W, RequestStep.FAIL): RequestState.FAILED,
    (_W, RequestStep.REFUSE): RequestState.REFUSED,
    (_W, RequestStep.EXPIRE): RequestState.EXPIRED,
    (_W, RequestStep.CANCEL): RequestState.CANCELLED,
    (_R, RequestStep.RETURN): RequestState.WAITING,
    (_R, RequestStep.FINISH): RequestState.COMPLETED,
    (_R, RequestStep.FAIL): RequestState.FAILED,
    (_R, RequestStep.CANCEL): RequestState.CANCELLED,
}
FINAL = frozenset(RequestState) - {_W, _R}


@dataclass(slots=True)
class Request:
    """Hold what the core knows of one submission; its tensors stay with the driver.

    The first block of fields never changes. The counts of items let a request
    be split over batches: `taken` went into a batch, `done` came back.

    Attributes:
        size_bytes: Bytes of its payload, counted against the queue's limit.
        arrival_ns: When the core took note of it; waiting counts from here.
        deadline_ns: Served or expired by then; None: no deadline.
        internal: Submitted by a pipeline's stage: never refused.
    """

    id: int
    lane: LaneKey
    items: int
    size_bytes: int
    priority_class: int
    arrival_ns: int
    deadline_ns: int | None = None
    internal: bool = False
    state: RequestState = RequestState.WAITING
    taken: int = 0
    done: int = 0

    def step(self, step: RequestStep) -> None:
        """Change state as the table says.

        Raises:
            AssertionError: The step is not one of this state's: our own mistake.
        """
        after = TRANSITIONS.get((self.state, step))
        assert after is not None, f"request {self.id}: no {step} from {self.state}"
        self.state = after
