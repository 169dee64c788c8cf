"""`python -m saver` is the command `saver`."""

from saver.cli import main

main()
