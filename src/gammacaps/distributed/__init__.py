"""Several processes that torchrun starts and that work as one. Free of torch here, so that help is instant."""
