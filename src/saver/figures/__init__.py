"""Drawing of arrays, in one look; matplotlib is imported when something is drawn."""
