"""The audit: the promise and the interval, counted on many worlds, some built against them."""

from saver.experiments.audit.count import Group, judged, steps
from saver.experiments.audit.words import CELLS, audit_text, cells, summary

__all__ = ["CELLS", "Group", "audit_text", "cells", "judged", "steps", "summary"]
