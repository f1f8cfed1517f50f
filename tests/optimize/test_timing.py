"""Calls are timed apart, consumed, and stopped early."""

from __future__ import annotations

import pytest
import torch

from genaccel.device import Unavailable
from genaccel.optimize.attempt import attempt
from genaccel.optimize.energy import energy_of
from genaccel.optimize.outcome import Failed
from genaccel.optimize.spec import TimingSpec
from genaccel.optimize.timing import Timing, time_calls


class Clock:
    """A device on which every call takes ``seconds`` and ``watts``."""

    def __init__(self, monkeypatch, seconds=1.0, watts=None):
        self.now, self.seconds, self.watts, self.calls = 0.0, seconds, watts, 0
        for module in ("timing", "energy"):
            monkeypatch.setattr(f"genaccel.optimize.{module}.time.monotonic", lambda: self.now)

    def call(self):
        self.calls += 1
        self.now += self.seconds
        return torch.ones(1)

    def timed(self, call):
        before = self.now
        output = call()
        # The n-th call is told from the others.
        return self.now - before + self.calls, output

    def energy_joules(self):
        if self.watts is None:
            raise Unavailable("no counter")
        return self.watts * self.now

    energy_counter = "a counter"

    def synchronize(self): ...
    def free_memory(self): ...

    def is_out_of_memory(self, error):
        return isinstance(error, MemoryError)


def test_the_first_call_and_the_warm_up_stand_apart(monkeypatch):
    clock = Clock(monkeypatch)
    timing = time_calls(clock, clock.call, TimingSpec(repeats=4, warmup=2, budget_s=100), least=3)
    assert (timing.first_call, timing.warmup, timing.repeats) == (2, (3, 4), (5, 6, 7, 8))
    assert timing.median == 6.5


@pytest.mark.parametrize(("budget", "least", "calls"), [(0.5, 3, 5), (0.5, 1, 3), (5, 3, 7), (3, 3, 6), (100, 3, 13)])
def test_repeats_stop_at_the_budget_but_not_before_the_least(monkeypatch, budget, least, calls):
    clock = Clock(monkeypatch)
    time_calls(clock, clock.call, TimingSpec(repeats=10, warmup=2, budget_s=budget), least=least)
    assert clock.calls == calls


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_call_whose_output_is_not_finite_has_no_time(monkeypatch, value):
    clock = Clock(monkeypatch)
    with pytest.raises(ValueError, match="no time of it is worth keeping"):
        time_calls(clock, lambda: torch.tensor([1.0, value]), TimingSpec(), least=3)


def test_energy_comes_from_repeats_that_last_long_enough(monkeypatch):
    clock = Clock(monkeypatch, watts=300)
    timing = time_calls(clock, clock.call, TimingSpec(repeats=2, warmup=0, budget_s=100), least=1)
    calls = clock.calls
    energy = energy_of(clock, clock.call, timing)
    assert (energy.joules, clock.calls) == (300, calls)
    assert "the timed repeats: 2 calls" in energy.method


def test_energy_of_a_short_call_comes_from_a_loop_of_a_second(monkeypatch):
    clock = Clock(monkeypatch, seconds=0.25, watts=300)
    energy = energy_of(clock, clock.call, Timing(0.25, (), (0.25, 0.25), joules=150))
    assert (energy.joules, clock.calls) == (75, 4)
    assert "a loop of its own: 4 calls in 1.00 s" in energy.method


def test_energy_without_a_counter_is_a_reason(monkeypatch):
    clock = Clock(monkeypatch)
    timing = time_calls(clock, clock.call, TimingSpec(repeats=2, warmup=0), least=1)
    assert timing.joules is None
    assert attempt(clock, lambda: energy_of(clock, clock.call, timing)) == Failed("unsupported", "no counter")


def test_out_of_memory_is_a_result_and_another_error_is_not(monkeypatch):
    clock = Clock(monkeypatch)

    def fail(error):
        raise error

    assert attempt(clock, lambda: fail(MemoryError("A. B. C. D. E"))) == Failed("oom", "A. B. C")
    with pytest.raises(KeyError):
        attempt(clock, lambda: fail(KeyError("x")))
