"""What `loadstone ab`, `slo` and `crash` have in common: trials, one document, any way of ending."""
