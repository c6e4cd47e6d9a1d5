"""`gammacaps bench`: the engine against plain PyTorch, eager and compiled, in one run and behind a correctness gate."""
