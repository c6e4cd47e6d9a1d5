"""What people do on the explorer's page, and what they then see."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

DESK = {"width": 1280, "height": 900}
PICTURES = Path(__file__).parents[2] / "screenshots"  # kept to be looked at; git ignores it


def keep(page, name):
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def drag(page, *points):
    """A stroke over the pad, by shares of its side."""
    box = page.locator("#pad").bounding_box()
    for n, (x, y) in enumerate(points):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=8 if n else 1)
        if n == 0:
            page.mouse.down()
    page.mouse.up()


def pad_pixels(page):
    """What the pad shows, as bytes (28, 28)."""
    url = page.locator("#pad").evaluate("pad => pad.toDataURL()")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))[..., 0]


def shown_scores(page, place=0):
    figures = page.locator(".bars").nth(place).locator("td.figures").all_inner_texts()
    return [float(figure.split()[-1]) for figure in figures]


def settled(page):
    """Waits until every network has answered what was asked last."""
    page.wait_for_selector("#networks:not(:has(.busy))")


def until(page, condition):
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never came to that")


def set_slider(page, name, value):
    page.locator(f"#{name}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); "
        "slider.dispatchEvent(new Event('change')); }",
        str(value),
    )
