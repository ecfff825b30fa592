"""Figures, warnings and the verdict of a run; `document.py` puts them together."""
