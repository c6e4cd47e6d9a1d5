"""How the batch of a step is shared out: over the processes, and by each of them over parts that fit its memory.

The loss of a batch is a mean over its images. So a part counts by its share of them, and the sum of the parts'
gradients is the gradient of the whole batch, however it is split.
"""

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gammacaps.distributed.processes import ALONE, Processes
from gammacaps.errors import InputError
from gammacaps.progress import say
from gammacaps.replay.recording import CannotRecord
from gammacaps.training.recorded_losses import RecordedLosses


@dataclass(frozen=True)
class BatchPart:
    """Some images of a batch: where they stand in the batch, and among those that this process was given."""

    in_batch: slice
    given: slice
    weight: float  # their share of the batch
    last: bool  # the gradients of all processes are added up after it


def parts_of(size: int, processes: Processes, accumulate: int) -> list[BatchPart]:
    """This process's parts of a batch; those of all processes together are the batch, each image once."""
    count = processes.count * accumulate
    if count > size:
        raise InputError(
            f"A batch of {size} images can't be split into {count} parts ({processes.count} processes, "
            f"--accumulate {accumulate}): use a larger --batch, or fewer parts."
        )
    first = processes.rank * accumulate
    bounds = [size * k // count for k in range(first, first + accumulate + 1)]
    return [
        BatchPart(slice(a, b), slice(a - bounds[0], b - bounds[0]), (b - a) / size, b == bounds[-1])
        for a, b in itertools.pairwise(bounds)
    ]


class Sharing:
    """The parts of a batch of `size` images that this process computes, and the objective that it computes of each.

    `all_learn` is False where some weights get no gradient, such as a decoder's without its loss; `recorded` is the
    learning pass where it can be replayed.
    """

    def __init__(
        self,
        objective: nn.Module,
        size: int,
        processes: Processes = ALONE,
        *,
        accumulate: int = 1,
        all_learn: bool = True,
        recorded: RecordedLosses | None = None,
    ) -> None:
        self.size, self.processes, self.objective, self.recorded = size, processes, objective, recorded
        self.parts = parts_of(size, processes, accumulate)
        self.own = slice(self.parts[0].in_batch.start, self.parts[-1].in_batch.stop)
        if processes.count > 1:
            self.objective = DistributedDataParallel(objective, find_unused_parameters=not all_learn)

    def learned(self, part: BatchPart, *given: Any) -> tuple[dict[str, Tensor], Tensor]:
        """What the objective gives for a part, whose gradient is added up.

        After the last part the gradient is that of the whole batch, in every process.
        """
        if self.recorded is not None and len(self.parts) == 1 and self.processes.count == 1:
            tensors = self.recorded.objective.given(*given)
            try:
                return self.recorded(**tensors), tensors["attacked"]
            except CannotRecord as error:
                say(f"The learning pass is not replayed but run step by step ({error}).")
                self.recorded = None
        with self._quiet(part):
            values, attacked = self.objective(*given)
            # DistributedDataParallel takes the mean over the processes, where a sum is wanted.
            weight = part.weight * self.processes.count
            (values["loss"] if weight == 1 else weight * values["loss"]).backward()
        return values, attacked

    def _quiet(self, part: BatchPart) -> contextlib.AbstractContextManager[None]:
        """In it, a part before the last keeps its gradients to this process."""
        if isinstance(self.objective, DistributedDataParallel) and not part.last:
            return self.objective.no_sync()
        return contextlib.nullcontext()

    def added(self, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """The parts' mean values to this process's share of the batch's."""
        shares = [part.weight for part in self.parts]
        if shares == [1.0]:
            return {name: value.detach() for name, value in parts[0].items()}
        return {
            name: torch.stack([w * each[name].detach() for w, each in zip(shares, parts, strict=True)]).sum(0)
            for name in parts[0]
        }

    def merged(self, losses: dict[str, Tensor], accuracy: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Shares of the batch's values to the values, the same in every process."""
        if self.processes.count == 1:
            return losses, accuracy
        given = (*losses.values(), accuracy)
        total = self.processes.total(torch.cat([value.float().flatten() for value in given]))
        *values, accuracy = (
            part.view(value.shape) for part, value in zip(total.split([v.numel() for v in given]), given, strict=True)
        )
        return dict(zip(losses, values, strict=True)), accuracy
