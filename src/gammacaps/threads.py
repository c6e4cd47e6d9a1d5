"""Threads that work together on a CPU."""

import os


def sleep_while_waiting() -> None:
    """Lets threads sleep while they wait for one another, unless the user's OMP_WAIT_POLICY says otherwise.

    Where they spin instead, and other programs want the same cores, a training takes up to ten times as long. It is
    read when torch is imported, so this must come before.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
