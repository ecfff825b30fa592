"""The server's machine when it is another one: watched by exporters that run there, or over ssh."""
