"""Do acknowledged commits survive a crash? Servers are killed under load, and every commit is looked for."""
