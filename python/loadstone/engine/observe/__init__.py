"""What a server says about itself: counters, sizes, bytes written."""
