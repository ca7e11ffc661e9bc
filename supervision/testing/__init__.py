"""For tests in virtual time: one seed gives one run, whatever machine or process it is in."""

from __future__ import annotations

from .determinism import Result, Simulation, Verdict, check_private_names, run_simulation

__all__ = ["Result", "Simulation", "Verdict", "check_private_names", "run_simulation"]
