"""Behaviour designs: how often to visit each (state, action)."""

from saver.design.balance import Balance
from saver.design.closed import Design, dag, is_tree, limit, tree
from saver.design.exact import ExactDesign, coverage, exact
from saver.design.plan import Plan, Warm
from saver.design.planner import Planner

__all__ = [
    "Balance", "Design", "ExactDesign", "Plan", "Planner", "Warm", "coverage", "dag", "exact", "is_tree",
    "limit", "tree",
]  # fmt: skip
