"""The audit: the promise and the interval, counted on many worlds, some built against them."""

from saver_audit.count import AUDITS, plan_audit
from saver_audit.judge import CELLS, Group, audit_text, cells, judged, summary

__all__ = ["AUDITS", "CELLS", "Group", "audit_text", "cells", "judged", "plan_audit", "summary"]
