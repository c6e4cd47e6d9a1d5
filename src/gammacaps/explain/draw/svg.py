"""The pieces of an SVG drawing as text: no script, no link, no id, so that many can stand in one page.

Words and neutral lines have the colour of the text around the drawing, for light and dark pages alike.
"""

import base64
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
    words = "".join(f' {key.replace("_", "-")}="{shown(value)}"' for key, value in attributes.items())
    content = (f"<title>{escape(hover)}</title>" if hover else "") + "".join(inside)
    return f"<{name}{words}>{content}</{name}>" if content else f"<{name}{words}/>"


def name_of(l: int, capsule: int) -> str:
    """How a drawing names a capsule and the ends of an edge, for a page that acts on them: layer.capsule."""
    return f"{l}.{capsule}"


def shown(value: object) -> str:
    """A value of an attribute, numbers no longer than can be seen."""
    return f"{round(value, 1 if abs(value) >= 10 else 2):g}" if isinstance(value, float) else escape(str(value))


def words(content: str, x: float, y: float, *, size: float = 12, **attributes: Any) -> str:
    """A line of text."""
    return tag("text", escape(content), x=x, y=y, font_size=size, fill=NEUTRAL, **attributes)


def curve(start: Point, end: Point, **attributes: Any) -> str:
    """A line that leaves and arrives level."""
    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    path = " ".join(map(shown, (x0, y0))) + " C " + " ".join(map(shown, (middle, y0, middle, y1, x1, y1)))
    return tag("path", d=f"M {path}", fill="none", **attributes)


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
    return opening + ALONE + "".join(inside) + "</svg>"
