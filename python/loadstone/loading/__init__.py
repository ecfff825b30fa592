"""What every load has in common: its tables and their ledger, its control connection, its cost."""
