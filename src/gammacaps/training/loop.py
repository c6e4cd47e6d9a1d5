"""The steps of a training; what is kept and shown of them is the watchers' (watch.py).

All randomness is a function of the seed and the step: initial weights, the order of the images, the attack's
starts. So a run that was interrupted and resumed ends at the very weights of an unbroken one.
"""

import time
from collections.abc import Iterator, Sequence

from torch import Tensor

from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.learner import Learner
from gammacaps.training.schedule import Length
from gammacaps.training.sharing import Sharing
from gammacaps.training.signals import StopRequests
from gammacaps.training.step import take_step
from gammacaps.training.watch import TakenStep, Watcher


def take_steps(
    config: TrainConfig,
    learner: Learner,
    batches: Iterator[tuple[Tensor, Tensor]],
    sharing: Sharing,
    length: Length,
    requests: StopRequests,
    watchers: Sequence[Watcher],
) -> None:
    """From wherever the learner stands to the end of training."""
    before, started = learner.seconds, time.monotonic()
    while not length.reached(learner):
        progress = length.share(learner)
        images, labels = next(batches)
        losses, accuracy, attacked = take_step(config, learner, images, labels, progress, sharing)
        learner.step += 1
        # One clock for all processes, or each would follow a schedule of its own.
        now = before + time.monotonic() - started
        learner.seconds, asked = sharing.processes.most(now, requests.count())
        taken = TakenStep(
            config,
            learner,
            sharing,
            progress,
            images,
            labels,
            attacked,
            shares=(losses, accuracy),
            last=length.reached(learner) or asked > 0,
            interrupted=asked > 0 and length.share(learner) < 1,
        )
        for watcher in watchers:
            watcher.after_step(taken)
