"""What can go wrong, each with a message that names the value, the place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class SaverError(Exception):
    """Every error that saver raises on purpose."""


class InvalidProblem(SaverError, ValueError):
    """A model, a world or a number of the problem statement makes no sense."""


class InvalidPolicy(SaverError, ValueError):
    """A policy is no distribution over the actions that a model has."""


class InvalidData(SaverError, ValueError):
    """Something observed (a trajectory, a file) is broken or impossible."""


class CampaignEnded(SaverError, RuntimeError):
    """All episodes of a campaign have been asked for."""


class StoreFailed(SaverError, RuntimeError):
    """A store of campaigns cannot be used, or did not write; nothing was half done."""


class TooManyOut(SaverError, RuntimeError):
    """As many trials are out as may be."""


class Infeasible(SaverError, ValueError):
    """No behaviour can do what was asked."""


class AssumptionWarning(UserWarning):
    """What was done may contradict what was declared; nothing was refused."""


def no_such(kind: str, name: Any, known: Iterable[str]) -> InvalidProblem:
    """The error for a name that is not known, with the nearest one."""
    return InvalidProblem(f"no {kind} {name!r}; {nearest(name, known)}")


def nearest(name: Any, known: Iterable[str], most: int = 50) -> str:
    """The name that may have been meant, and what is known."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    rest = f" and {len(names) - most} others" if len(names) > most else ""
    return f"{hint}known: {', '.join(names[:most])}{rest}"
