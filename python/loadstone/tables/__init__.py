"""Results for programs: run folders as typed documents and Arrow tables, and their export."""
