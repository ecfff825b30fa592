"""What runs measured over time: history.jsonl, its page, and exports for Otava and Bencher."""
