"""python -m tune: the program `tune`."""

from ._programs import main

main()
