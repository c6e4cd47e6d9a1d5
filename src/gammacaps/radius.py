"""How a radius, the largest change of a pixel, is shown to people."""

NEAR = 0.002  # of a step of a byte: 0.03137 was meant as 8/255


def radius(eps: float) -> str:
    """A radius as people write it: a short decimal such as 0.1, else 8/255 for what counts the steps of a byte.

    Any other has up to six digits, as in files' names, so that 0.1234 and 0.1231 are told apart in a table. In
    JavaScript it is `radius` of explorer/page/make.js.
    """
    steps = round(255 * eps)
    counts = 0 < steps <= 255 and abs(255 * eps - steps) < NEAR
    is_short = abs(float(f"{eps:.3g}") - eps) <= 1e-9
    return f"{steps}/255" if counts and not is_short else f"{eps:g}"
