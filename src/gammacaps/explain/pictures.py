"""What a page can hold: images and figures as small PNG files, tensors as plain numbers."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from gammacaps.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL import Image

SIDE = 84  # pixels of an image in a grid: 28 three times
FONT = 12  # height of the captions, in pixels
GAP = 6  # pixels between the images of a grid
TICKS = 40  # names along an axis, at most
_DARK = ContextVar("dark", default=False)
INK, PAPER = "#d6d5d1", "#15171a"  # on dark pages


@contextlib.contextmanager
def dark_paper() -> Iterator[None]:
    """Figures and grids that are drawn inside have light words on dark paper; images stay as they are."""
    before = _DARK.set(True)
    try:
        yield
    finally:
        _DARK.reset(before)


def paper_colour() -> tuple[float, float, float]:
    """Red, green and blue in [0, 1] of what grids are drawn on just now."""
    parts = (int(PAPER[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return (next(parts), next(parts), next(parts)) if _DARK.get() else (1.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a grid: images with their captions, and the row's name at the left."""

    images: Sequence[Tensor]  # each C H W in [0, 1]
    captions: Sequence[str] = ()
    name: str = ""


def image_png(image: Float[Tensor, "C H W"], side: int = SIDE) -> bytes:
    """One image; a small one enlarged by a whole factor to about `side` pixels, each pixel a square.

    Three channels are red, green and blue; any other number stands side by side in grey.
    """
    from PIL import Image

    return _compact(Image.fromarray(_enlarged(image, side)))


def grid_png(rows: Sequence[Row], *, side: int = SIDE, gap: int = GAP) -> bytes:
    """Rows of images with captions under them and names at their left, black on white; all images of one shape."""
    from PIL import Image, ImageDraw

    cells = [[_enlarged(image, side) for image in row.images] for row in rows]
    shapes = {cell.shape for row in cells for cell in row}
    if len(shapes) != 1:
        raise InputError(f"A grid needs images, all of one shape, not {sorted(shapes)}: draw others apart.")
    height, width = shapes.pop()[:2]
    font = _font()
    captions = [
        ["\n".join(_fitted(words, width + gap - 2, font) for words in caption.split("\n")) for caption in row.captions]
        for row in rows
    ]
    left = max((int(font.getlength(row.name)) + 2 * gap for row in rows if row.name), default=gap)
    lines = [max((caption.count("\n") + 1 for caption in line if caption), default=0) for line in captions]
    heights = [height + gap + (count * (FONT + 4) + 1 if count else 0) for count in lines]
    size = (left + max(map(len, cells)) * (width + gap), gap + sum(heights))
    colour = any(cell.ndim == 3 for row in cells for cell in row)
    ink, paper = (INK, PAPER) if _DARK.get() else ("black", "white")
    page = Image.new("RGB" if colour or _DARK.get() else "L", size, paper)
    draw = ImageDraw.Draw(page)
    top = gap
    for row, line, images, taken in zip(rows, captions, cells, heights, strict=True):
        draw.text((gap, top + height // 2), row.name, ink, font, anchor="lm")
        for column, cell in enumerate(images):
            x = left + column * (width + gap)
            draw.rectangle((x - 1, top - 1, x + width, top + height), outline="#bbbbbb")
            page.paste(Image.fromarray(cell), (x, top))
        for column, caption in enumerate(line):
            middle = left + column * (width + gap) + width // 2
            for number, words in enumerate(caption.split("\n")):
                draw.text((middle, top + height + 3 + number * (FONT + 4)), words, ink, font, anchor="mt")
        top += taken
    return _compact(page)


def figure_png(figure: "Figure", dpi: int = 100) -> bytes:
    """A matplotlib figure, its colours reduced to 256."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    if _DARK.get():
        _darken(figure)
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return _compact(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))


def heat_figure(
    values: Float[Tensor, "R C"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    down: str = "",
    across: str = "",
    top: float = 1.0,
    cells: Sequence[Sequence[str]] | None = None,
) -> "Figure":
    """A matrix as shades from the paper's (0) to strong blue (`top`), its axes named, with the words of `cells`."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    shade = LinearSegmentedColormap.from_list("night", (PAPER, "#3b82c4", "#c6e2ff")) if _DARK.get() else "Blues"
    R, C = values.shape
    width = min(9.0, max(4.0, 1.6 + 0.42 * C))
    height = min(9.0, max(2.2, 1.3 + 0.26 * R))
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    shades = axes.imshow(values.cpu().numpy(), cmap=shade, vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across, fontsize=9)
    axes.set_ylabel(down, fontsize=9)
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        shown = range(0, len(names), -(-len(names) // TICKS))
        axis.set_ticks(list(shown), [names[place] for place in shown], fontsize=8)
    if max(map(len, columns)) > 2:
        for name in axes.get_xticklabels():
            name.set(rotation=45, ha="right", rotation_mode="anchor")
    for r, line in enumerate(cells or ()):
        for c, word in enumerate(line):
            strong = values[r, c].item() > 0.6 * top
            colour = "black" if strong is _DARK.get() else "white"
            axes.text(c, r, word, ha="center", va="center", fontsize=7.5, color=colour)
    if cells is None:
        figure.colorbar(shades, ax=axes, fraction=0.05, pad=0.02).ax.tick_params(labelsize=8)
    return figure


def _darken(figure: "Figure") -> None:
    """Dark paper and light ink for all that is around the pictures of a figure."""
    figure.set_facecolor(PAPER)
    for axes in figure.axes:
        axes.set_facecolor(PAPER)
        axes.tick_params(colors=INK, which="both")
        for name in (axes.title, axes.xaxis.label, axes.yaxis.label):
            name.set_color(INK)
        for spine in axes.spines.values():
            spine.set_edgecolor(INK)


def plain(tensor: Tensor) -> Any:
    """Nested lists of numbers, with 4 decimals: enough for a page."""
    return tensor.double().round(decimals=4).tolist() if tensor.is_floating_point() else tensor.tolist()


def _enlarged(image: Tensor, side: int) -> UInt8[np.ndarray, "..."]:
    """H W bytes, or H W 3 for colour, each pixel repeated a whole number of times."""
    if image.dim() != 3 or not image.is_floating_point():
        raise InputError(f"A picture is made of a float image (C, H, W), not {image.dtype} {tuple(image.shape)}.")
    pixels = (image.detach().float().cpu().nan_to_num().clamp(0, 1) * 255).round().to(torch.uint8)
    factor = max(1, round(side / max(image.shape[1:])))
    pixels = pixels.repeat_interleave(factor, 1).repeat_interleave(factor, 2)
    if len(pixels) == 3:
        return pixels.permute(1, 2, 0).contiguous().numpy()
    return torch.cat(list(pixels), dim=1).numpy()


def _fitted(caption: str, width: int, font: Any) -> str:
    """As much of a caption as fits the width."""
    if font.getlength(caption) <= width:
        return caption
    while caption and font.getlength(caption + "…") > width:
        caption = caption[:-1]
    return caption.rstrip() + "…"


def _font() -> Any:
    """The font that matplotlib brings, so that grids and figures look alike."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")), FONT)


def _compact(page: "Image.Image") -> bytes:
    """PNG of shades of grey where it is grey already, else of a palette."""
    from PIL import Image

    if page.mode != "L":
        page = page.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    page.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
