"""Behaviour designs: how often to visit each (state, action)."""

from saver.design.closed import dag, is_tree, tree
from saver.design.parts import Design, limit

__all__ = ["Design", "dag", "is_tree", "limit", "tree"]
