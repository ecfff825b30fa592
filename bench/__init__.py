"""Loadstone's own speed, measured beside its peers on the machine at hand."""
