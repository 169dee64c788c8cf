"""The catalogue of experiments, cut to what a test can run."""

import sys
from dataclasses import replace

from saver.experiments import catalogue
from saver.experiments.catalogue import EXPERIMENTS, RATES


def small_catalogue(monkeypatch):
    """Every experiment and rate of the catalogue, cut to a few episodes and runs."""
    tiny = {name: replace(e, episodes=60, runs=(3, 3, 3)) for name, e in EXPERIMENTS.items()}
    rates = [replace(r, budgets=(300, 600, 1200), runs=(40, 40, 40)) for r in RATES]
    for name in ("catalogue", "claims", "report", "pictures"):
        monkeypatch.setattr(sys.modules[f"saver.experiments.{name}"], "EXPERIMENTS", tiny)
    monkeypatch.setattr(catalogue, "RATES", rates)
    monkeypatch.setattr(catalogue, "ALPHAS", (0.25, 0.5))
