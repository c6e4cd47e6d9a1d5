"""Passes of a network on a GPU, recorded once and replayed: small kernels then no longer wait for the host."""

from gammacaps.replay.answers import Replayed, replayed

__all__ = ["Replayed", "replayed"]
