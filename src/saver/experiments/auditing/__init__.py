"""The audit: the promise and the interval, counted on many worlds, some built against them."""

from saver.experiments.auditing.count import AUDITS, plan_audit
from saver.experiments.auditing.judge import Group, judged
from saver.experiments.auditing.verdicts import CELLS, audit_text, cells, summary

__all__ = ["AUDITS", "CELLS", "Group", "audit_text", "cells", "judged", "plan_audit", "summary"]
