"""From elsewhere and back: logs become problems, environments models, and episodes are written out."""

from saver._late import late

__getattr__, __dir__, __all__ = late(__name__)
