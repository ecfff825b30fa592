"""Load hosts on SLURM: one job for each, by dask-jobqueue. Docs: docs/load-hosts/slurm.md.

Start it on a machine that the jobs can reach, and give the address that it prints to `--hosts`.
Ctrl-C ends the jobs.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys

from dask_jobqueue import SLURMCluster


def main() -> None:
    """Request the jobs, and keep them until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=3, help="how many load hosts")
    parser.add_argument("--cores", type=int, default=4, help="of each")
    parser.add_argument("--memory", default="4GB", help="of each")
    parser.add_argument("--walltime", default="01:00:00", help="longest time of a job")
    parser.add_argument("--queue", help="partition of SLURM")
    parser.add_argument("--interface", help="network interface of the nodes, such as ib0")
    given = parser.parse_args()
    cluster = SLURMCluster(
        cores=given.cores,
        processes=1,  # one worker, and so one agent, in each job
        nanny=False,  # a worker that was restarted would have lost its agent
        memory=given.memory,
        walltime=given.walltime,
        queue=given.queue,
        interface=given.interface,
        job_extra_directives=["--exclusive"],  # a node of its own: other jobs would take cores from the load
    )
    cluster.scale(jobs=given.hosts)
    print(f"waiting until {given.hosts} jobs run (squeue shows them)", file=sys.stderr)
    with cluster, contextlib.suppress(KeyboardInterrupt):
        cluster.wait_for_workers(given.hosts)
        print(f"--hosts {cluster.scheduler_address}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
