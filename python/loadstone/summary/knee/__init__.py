"""The knee of a load in steps."""
