"""The pieces of an SVG drawing as text: no script, no link, no id, so that many can stand in one page.

Words and neutral lines have the colour of the text around the drawing, for light and dark pages alike.
"""

import base64
import functools
import io
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image
from torch import Tensor

Point = tuple[float, float]

NEUTRAL = "currentColor"
FONT = "system-ui, sans-serif"
ON_STRONG = "gammacaps-on-strong"  # words on a strong colour
# Matches where the drawing is a document of its own, which inherits no colour: a grey for light and dark.
ALONE = (
    f"<style>svg:root{{color:#777}}svg:root .{ON_STRONG}"
    "{fill:#fff;stroke:#000;stroke-opacity:.55;stroke-width:2.5px;paint-order:stroke}</style>"
)


def tag(name: str, *inside: str, hover: str = "", **attributes: Any) -> str:
    """An element; `stroke_width=2` is stroke-width="2", `hover` what a pointer over it is told."""
    words = "".join([f' {dashed(key)}="{shown(value)}"' for key, value in attributes.items()])
    content = (f"<title>{escape(hover)}</title>" if hover else "") + "".join(inside)
    return f"<{name}{words}>{content}</{name}>" if content else f"<{name}{words}/>"


@functools.lru_cache(256)
def dashed(name: str) -> str:
    return name.replace("_", "-")


def name_of(l: int, capsule: int) -> str:
    """How a drawing tells which capsule a shape, a name or the end of an edge is of, for a page: layer.capsule."""
    return f"{l}.{capsule}"


def shown(value: object) -> str:
    """A value of an attribute, numbers no longer than can be seen."""
    if not isinstance(value, float):
        return escaped(str(value))
    if 0 <= value < 10:  # thousands in a drawing: opacities, widths
        return HUNDREDTHS[round(100 * value)]
    return f"{value:.1f}".removesuffix(".0") if value >= 10 else f"{round(value, 1 if value <= -10 else 2) + 0.0:g}"


HUNDREDTHS = [f"{n / 100:g}" for n in range(1001)]


@functools.lru_cache(1024)  # colours, anchors and the like, which come again and again
def escaped(value: str) -> str:
    return escape(value)


def words(content: str, x: float, y: float, *, size: float = 12, **attributes: Any) -> str:
    """A line of text."""
    return tag("text", escape(content), x=x, y=y, font_size=size, fill=NEUTRAL, **attributes)


def curve(start: Point, end: Point, **attributes: Any) -> str:
    """A line that leaves and arrives level."""
    (x0, y0), (x1, y1) = start, end
    path = level(shown(x0), shown(y0), shown((x0 + x1) / 2), shown(x1), shown(y1))
    return tag("path", d=path, fill="none", **attributes)


def level(left: str, start: str, middle: str, right: str, end: str) -> str:
    """The path of a curve from (left, start) to (right, end)."""
    return f"M {left} {start} C {middle} {start} {middle} {end} {right} {end}"


def picture(
    image: Float[Tensor, "C H W"], x: float, y: float, size: float, *, hover: str = "", **attributes: Any
) -> str:
    """An image in [0, 1] as large square pixels; one or three channels, of any others their mean in grey."""
    pixels = image.detach().float().cpu().clamp(0, 1)
    if len(pixels) not in (1, 3):
        pixels = pixels.mean(0, keepdim=True)
    levels = (pixels * 255).round().to("cpu").numpy().astype(np.uint8).transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(levels.squeeze(-1) if len(pixels) == 1 else levels).save(file, "PNG", optimize=True)
    link = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    style = "image-rendering:pixelated"
    return tag("image", hover=hover, x=x, y=y, width=size, height=size, style=style, **attributes, href=link)


def drawing(width: float, height: float, alternative: str, *inside: str, left: float = 0.0, role: str = "img") -> str:
    """The whole from `left` on, as wide as its place allows; `alternative` tells in words what it shows.

    The role "group" is for a page in which parts of the drawing can be chosen.
    """
    box = " ".join(map(shown, (left, 0, width - left, height)))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{shown(width - left)}" '
        f'style="max-width:100%;height:auto" font-family="{FONT}" role="{role}" aria-label="{escape(alternative)}">'
    )
    return "".join([opening, ALONE, *inside, "</svg>"])
