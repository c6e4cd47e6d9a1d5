"""Work off the page's thread: two lanes, so that what is slow never holds up what is quick; answers kept by content.

Whoever asks for what is being worked out already waits for that; what nobody waits for any more is stopped.
Questions of one group that wait together are answered from one pass of the network. More than can be answered in time
is refused.
Once nothing has been asked for a while, the memory that work needed goes back to the system.
"""
