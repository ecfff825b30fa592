"""What is in a run folder: the types of its documents, how they are read, and the manifest of its files."""
