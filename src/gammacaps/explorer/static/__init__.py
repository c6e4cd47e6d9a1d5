"""The explorer without a server: a folder whose page runs the network in the browser."""
