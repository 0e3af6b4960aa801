"""The runtime: one event loop over a transport, and the plain worker classes that it drives."""
