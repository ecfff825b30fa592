"""`--watch`, `--live` and `--openmetrics` of command lines that are other programs'."""
