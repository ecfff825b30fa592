"""Two sides of a question in alternating trials, each on a fresh server, until the answer is known."""
