"""A gamma-capsule network trained under attack in a loop of Lightning: python examples/lightning_training.py [STEPS]

The loop, devices, logging and checkpoints are Lightning's; the network, its attack, its loss and its T are gammacaps'.
"""

import sys

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import gammacaps
from gammacaps.attacks import pgd
from gammacaps.metrics import TScore
from gammacaps.training.losses import margin_loss


class UnderAttack(lightning.LightningModule):
    def __init__(self, eps: float = 0.1) -> None:
        super().__init__()
        self.model = gammacaps.create("small", filters=8, primary_types=4, decoder=())
        self.eps = eps
        self.tree = TScore()

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        images, labels = batch
        attacked = pgd(self.model, images, labels, eps=self.eps, step=0.05, steps=3)
        loss = margin_loss(self.model(attacked), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], _: int) -> None:
        images, labels = batch
        parse = self.model.parse(images)
        self.tree.update(parse.couplings[0])
        self.log("accuracy", (parse.scores.argmax(1) == labels).float().mean())
        self.log("T", self.tree)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main(steps: int = 100) -> None:
    lightning.seed_everything(0, verbose=False)
    train = DataLoader(TensorDataset(*gammacaps.load_data("fashion-mini", "train")), batch_size=64, shuffle=True)
    test = DataLoader(TensorDataset(*gammacaps.load_data("fashion-mini")), batch_size=100)
    trainer = lightning.Trainer(max_steps=steps, devices=1, logger=False, enable_checkpointing=False)
    module = UnderAttack()
    trainer.fit(module, train)
    (scores,) = trainer.validate(module, test, verbose=False)
    print(f"accuracy {scores['accuracy']:.3f}, T {scores['T']:.3f} after {steps} steps")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
