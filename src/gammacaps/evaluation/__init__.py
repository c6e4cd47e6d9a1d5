"""A network on test images: how right, how right under attack, and how its capsules are built."""
