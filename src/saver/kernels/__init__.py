"""Compiled code: arrays in, arrays out. The loop of episodes, which does what `engine.reference` does."""
