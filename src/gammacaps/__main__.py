"""`python -m gammacaps` is the command line."""

from gammacaps.cli import main

main()
