"""`python -m benchmarks.alike`."""

from gammacaps.threads import sleep_while_waiting

if __name__ == "__main__":
    sleep_while_waiting()
    from benchmarks.alike.command import main  # imports torch, which reads what was set

    main()
