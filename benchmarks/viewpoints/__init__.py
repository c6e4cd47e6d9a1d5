"""Known again from other viewpoints? smallNORB split by azimuth and by elevation: `python -m benchmarks.viewpoints`."""
