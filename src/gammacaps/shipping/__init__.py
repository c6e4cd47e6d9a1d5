"""How a trained run becomes a network that comes with the package: halved, measured, and told of on a card."""
