"""A disk that forgets what was not synced, for crashes as by a loss of power.

A process of ours serves the file system (`server.py`); `disk.py` starts it and talks to it; `mounts.py` finds
the mounts that killed ones left, and says whether such a file system can be mounted here.
"""

from loadstone.power_disk.disk import Counters, Lost, PowerDisk
from loadstone.power_disk.mounts import available, reap

__all__ = ["Counters", "Lost", "PowerDisk", "available", "reap"]
