"""Parse trees as SVG: one tree, those of a clean and an attacked image, or those of routing's iterations."""

from gammacaps.explain.draw.figure import draw, draw_pair, draw_routing

__all__ = ["draw", "draw_pair", "draw_routing"]
