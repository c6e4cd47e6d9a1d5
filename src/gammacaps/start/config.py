"""What `gammacaps start` is told. Free of torch, so that help is instant."""

from dataclasses import dataclass

from gammacaps.names import PresetName
from gammacaps.options import MOST, check_amount, check_eps, check_seed, check_whole


@dataclass(frozen=True)
class StartConfig:
    """What is not given is chosen, and said."""

    minutes: float = 5.0
    """Time for the two trainings together; measuring and the page come after that, and are told before."""
    size: int | None = None
    """Longest side of the pictures for the network; without it their own, at most 40 on a CPU and 96 on a GPU."""
    crop: bool = False
    """Cut pictures of another shape to the middle; without it they are stretched."""
    preset: PresetName | None = None
    """Network; without it small on a CPU, deep or (above 48 pixels) residual on a GPU."""
    eps: float | None = None
    """By how much an attack may change each pixel, of 1; without it 0.1 for drawings, 8/255 for photographs."""
    seed: int = 0
    """Seed of the pictures that are held back for testing, and of the trainings."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 and so on."""

    def __post_init__(self) -> None:
        check_amount("minutes", self.minutes, zero=False, most=MOST)
        check_whole("size", self.size, least=8)
        if self.eps is not None:
            check_amount("eps", self.eps, zero=False)
            check_eps(self.eps)
        check_seed(self.seed)
