"""From elsewhere and back: Gymnasium's environments."""
