"""`python -m gammacaps.shipping`."""

from gammacaps.threads import sleep_while_waiting

if __name__ == "__main__":
    sleep_while_waiting()
    from gammacaps.shipping.command import main  # imports torch, which reads what was set

    main()
