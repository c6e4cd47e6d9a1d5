"""What the runs will cost, before any is started."""

from collections.abc import Collection, Sequence

from gammacaps.paper.plan import Planned
from gammacaps.runs.train_config import TrainConfig

# Milliseconds on one H200: of a pass with the image's gradient at batch 128, and of a step beside its attack. Those
# of the paper's network were measured (docs/engine.md), the others are estimates.
PASS_MS = {"paper": 0.7, "cnn": 0.3, "matrix": 20.0, "small": 0.2}
STEP_MS = {"paper": 4.0, "cnn": 2.0, "matrix": 15.0, "small": 2.0}


def seconds(config: TrainConfig) -> float:
    """About how long a training takes on one H200."""
    passes = config.attack_steps if config.robust else 0
    size = config.batch / 128
    return (config.steps or 0) * (STEP_MS[config.preset] + passes * PASS_MS[config.preset] * size) / 1000


def cost_table(runs: Sequence[Planned], done: Collection[str], *, quick: bool = False) -> str:
    """One line a run, and their sum without those that are done; the quick ones are not for a GPU."""
    if quick:
        lines = [f"{run.name:<32}{run.config.steps:>8,} steps{'  done' if run.name in done else ''}" for run in runs]
        return "\n".join([*lines, f"{len(runs)} runs; with measuring, all take about 10 minutes on 2 cores."])
    lines = [f"{'run':<32}{'steps':>8}{'attack':>8}  {'measured at':<16}about, on one H200"]
    for run in runs:
        attack = f"PGD-{run.config.attack_steps}" if run.config.robust else "-"
        cost = "done" if run.name in done else _words(seconds(run.config))
        moments = ", ".join(f"{m:,}" for m in run.moments)
        lines.append(f"{run.name:<32}{run.config.steps:>8,}{attack:>8}  {moments:<16}{cost}")
    left = [seconds(run.config) for run in runs if run.name not in done]
    rest = f"{_words(sum(left))} of training left, each alone on the GPU, and three quarters of that for measuring"
    more = rest if left else "all done"
    lines.append(f"{len(runs)} runs, {more}.")
    return "\n".join(lines)


def _words(amount: float) -> str:
    return f"{amount:.0f} s" if amount < 60 else f"{amount / 60:.1f} min"
