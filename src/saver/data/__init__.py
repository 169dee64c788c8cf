"""From logs to a problem, and back: reading, fitting, writing out."""

from saver.data.episodes import Episodes
from saver.data.reading import read_log

__all__ = ["Episodes", "read_log"]
