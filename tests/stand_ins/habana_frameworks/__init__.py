"""A stand-in for Intel's plugin: it records what is called, in order; tensors stay on the CPU."""

from __future__ import annotations

EVENTS: list[str] = []
"""Calls in order, cleared by the test."""

NAME, COUNT, LAZY = "GAUDI2", 8, True
"""What this machine has, set by the test."""
