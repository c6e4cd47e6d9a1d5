"""What the runs will cost on one H200, before any is started, and how they are dealt to several machines."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from gammacaps.paper.plan import Planned
from gammacaps.runs.train_config import TrainConfig


@runtime_checkable
class Named(Protocol):
    """What is dealt: a name tells it from the others."""

    @property
    def name(self) -> str: ...


Run = TypeVar("Run", bound=Named)


class Times(NamedTuple):
    """Milliseconds on one H200 at batch 128."""

    one_pass: float  # forward and the gradient of the image
    step: float  # a training step beside its attack
    measured: bool  # whether both follow from what docs/engine.md has; else they are estimates


# From docs/engine.md: a pass of the paper's network 0.69 ms and a step under PGD-40 31.5; PGD-40 of the deep one 32.1
# and its step under PGD-10 10.5; PGD-40 of the CNN 13.2 and its step under PGD-10 4.7; PGD-40 of EM 108, its step not.
TIMES = {
    "paper": Times(0.69, 3.9, True),
    "deep": Times(0.80, 2.5, True),
    "cnn": Times(0.33, 1.4, True),
    "matrix": Times(2.7, 8.0, False),
    "small": Times(0.2, 2.0, False),
}
WITHOUT_KERNELS = Times(2.0, 6.0, False)  # the paper's network that is given scaled images: plain passes, recorded
# Passes of the whole strong suite for an image that stands, forward passes counted as 0.4; and by how much the clock is
# slower than these passes, since libraries wait for the host and images fall out of batches.
SUITE_PASSES, SLOWER = 6000, 6.0
FALLEN = 0.2  # of that at radii beyond training's, where few images stand, and those that fell are left alone
PAPER_PASSES = 3 * 41  # FGSM and PGD-40 at three radii
LOOK_SECONDS = 20.0  # T, D, maps, filters, images of nothing
GENERATE_SECONDS = 15.0  # inputs for all capsules: 13.2 s measured
EXPECTED_CLEAN = 1.5  # clean trainings end by what they learn: so many times their least length
IMAGES = 10_000  # of a test set


class Cost(NamedTuple):
    """Seconds on one H200."""

    training: float
    measuring: float
    measured: bool  # whether training's share follows from times that were measured

    @property
    def total(self) -> float:
        return self.training + self.measuring


def times_of(config: TrainConfig) -> Times:
    scaled = any(change.startswith("input_scale=") for change in config.model)
    return WITHOUT_KERNELS if scaled and config.preset == "paper" else TIMES[config.preset]


def cost_of(run: Planned) -> Cost:
    """About how long a run's training and measuring take, alone on the GPU."""
    times, config = times_of(run.config), run.config
    steps = config.steps or 0
    if run.plateau is not None:
        steps = int(EXPECTED_CLEAN * run.plateau.least)
    passes = config.attack_steps if config.robust else 0
    size = config.batch / 128
    training = steps * size * (times.step + passes * times.one_pass) / 1000
    paper = (run.images or IMAGES) / 128 * PAPER_PASSES * times.one_pass / 1000 * (1 + (run.kind in ("robust", "long")))
    strong = sum(
        (images or IMAGES) / 128 * SUITE_PASSES * times.one_pass * SLOWER / 1000 * (1 if eps <= config.eps else FALLEN)
        for eps, images in run.worst
    )
    look = LOOK_SECONDS + GENERATE_SECONDS * run.generate
    measuring = strong + len(run.moments) * (paper + look)
    return Cost(training, measuring, times.measured and run.plateau is None and size == 1)


def dealt(runs: Sequence[Planned], mine: int, parts: int) -> list[Planned]:
    """The part `mine` of the runs, from 1, each part about as costly as another."""
    return dealt_by(runs, lambda run: cost_of(run).total, mine, parts)


def dealt_by(runs: Sequence[Run], cost: Callable[[Run], float], mine: int, parts: int) -> list[Run]:
    """The part `mine` of them, from 1: the costliest first, each to the part that has least; in their order."""
    loads, of = [0.0] * parts, {}
    for run in sorted(runs, key=lambda run: (-cost(run), run.name)):
        place = loads.index(min(loads))
        loads[place] += cost(run)
        of[run.name] = place + 1
    return [run for run in runs if of[run.name] == mine]


def cost_table(runs: Sequence[Planned], done: Collection[str], *, quick: bool = False) -> str:
    """One line a run, and the sum of those that are left; the quick ones are not for a GPU."""
    if quick:
        lines = [f"{run.name:<36}{run.config.steps:>8,} steps{'  done' if run.name in done else ''}" for run in runs]
        return "\n".join([*lines, f"{len(runs)} runs; with measuring, all take about 10 minutes on 2 cores."])
    lines = [f"{'run':<36}{'steps':>16}{'attack':>8}{'training':>11}{'measuring':>11}  minutes on one H200"]
    left = [cost_of(run) for run in runs if run.name not in done]
    for run in runs:
        attack = f"PGD-{run.config.attack_steps}" if run.config.robust else "-"
        cost = cost_of(run)
        figures = f"{cost.training / 60:>11.1f}{cost.measuring / 60:>11.1f}{'' if cost.measured else '  estimated'}"
        waits = "  after the recipes" if run.needs else ""
        lines.append(f"{run.name:<36}{_steps(run):>16}{attack:>8}{'  done' if run.name in done else figures + waits}")
    if not left:
        return "\n".join([*lines, f"{len(runs)} runs, all done."])
    training, measuring = (sum(x) / 60 for x in ([c.training for c in left], [c.measuring for c in left]))
    return "\n".join(
        [
            *lines,
            f"{len(runs)} runs, {len(left)} left: {training:.0f} minutes of training and {measuring:.0f} of measuring, "
            f"together {(training + measuring) / 60:.1f} hours on one H200, each run alone on it.",
            "Training's minutes follow from step times in docs/engine.md unless they are marked as estimated; those of "
            f"clean trainings are for {EXPECTED_CLEAN:g} times their least length. All measuring is estimated.",
        ]
    )


def _steps(run: Planned) -> str:
    """A run's length; of one that ends by what it learns, the least and the most."""
    if run.plateau is None:
        return f"{run.config.steps:,}"
    return f"{run.plateau.least:,}-{run.plateau.most:,}"
