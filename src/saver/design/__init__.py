"""Behaviour designs: how often to visit each (state, action)."""

from saver.design.closed import dag, is_tree, tree
from saver.design.exact import ExactDesign, Planner, coverage, exact
from saver.design.parts import Design, limit

__all__ = ["Design", "ExactDesign", "Planner", "coverage", "dag", "exact", "is_tree", "limit", "tree"]
