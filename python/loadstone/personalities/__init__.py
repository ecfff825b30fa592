"""Drop-in command lines: other programs' options, scripts and output on Loadstone's own driver."""
