"""Networks trained alike: what the gamma objective, routing and capsules are worth: `python -m benchmarks.alike`."""
