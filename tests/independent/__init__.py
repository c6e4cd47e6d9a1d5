"""Reference implementations in float64 loops, written from the paper alone and never from the package.

They are slow on purpose: each loop is one index of a formula, so that a reader can check it by eye. Tests
compare the package with them; they must not import it.
"""
