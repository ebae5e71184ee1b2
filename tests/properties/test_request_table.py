"""The request table: every state and step either leads to a known state or is our mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from engine.request import FINAL, TRANSITIONS, Request, RequestState, RequestStep
from engine.spec import LaneKey

LANE = LaneKey("a", (1,), "float32")


def request(state: RequestState = RequestState.WAITING) -> Request:
    made = Request(1, LANE, 1, 4, 5, 0)
    made.state = state
    return made


@given(st.sampled_from(RequestState), st.sampled_from(RequestStep))
def test_every_state_and_step_moves_to_a_known_state_or_raises(
    state: RequestState, step: RequestStep
):
    one = request(state)
    if (state, step) in TRANSITIONS:
        one.step(step)
        assert one.state in RequestState
    else:
        with pytest.raises(AssertionError):
            one.step(step)
        assert one.state is state


def test_a_final_state_has_no_way_out():
    assert not [pair for pair in TRANSITIONS if pair[0] in FINAL]


class RequestLife(RuleBasedStateMachine):
    """Let a request live any life; once it is over it stays over."""

    def __init__(self) -> None:
        super().__init__()
        self.request = request()
        self.past: list[RequestState] = []

    @rule(step=st.sampled_from(RequestStep))
    def step(self, step: RequestStep) -> None:
        before = self.request.state
        if (before, step) not in TRANSITIONS:
            return
        assert before not in FINAL
        self.request.step(step)
        self.past.append(before)


TestRequestLife = RequestLife.TestCase
