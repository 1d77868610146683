"""Peers of `bench farm` and `bench farm-exec`: tasks with Ray or Dask, each by its own best practice.

    peers.py (ray|dask) TASKS ROUND_TRIPS [noop|python|numba]

Tasks do nothing, or count primes in plain Python or compiled by numba. Prints one JSON object: tasks per second of one
large batch, the sum of its answers, and the median seconds of a single task.
"""

import json
import statistics
import sys
import time


# Tasks count primes up to numbers below this, as the lines of `bench farm-exec` do.
LIMITS = 1_000


def noop(_at=0):
    return 0


def sieve(limit, composite):
    """The sieve of Eratosthenes over odd numbers, as examples/programs/primes has it, a byte for each."""
    if limit < 2:
        return 0
    count = 1
    for i in range(1, len(composite)):
        if composite[i]:
            continue
        count += 1
        prime = 2 * i + 1
        for multiple in range(prime * prime // 2, len(composite), prime):
            composite[multiple] = 1
    return count


def python(at=0):
    limit = at % LIMITS
    return sieve(limit, bytearray((limit + 1) // 2))


compiled = None


def numba(at=0):
    """Compiled once in each worker, before anything is timed."""
    import numpy

    global compiled
    if compiled is None:
        from numba import njit

        compiled = njit(sieve)
    limit = at % LIMITS
    return int(compiled(limit, numpy.zeros((limit + 1) // 2, numpy.uint8)))


def measure(batch, single, tasks, trips):
    batch(min(tasks, 500))  # workers and caches warm
    start = time.perf_counter()
    answers = batch(tasks)
    rate = tasks / (time.perf_counter() - start)
    times = []
    for _ in range(trips):
        start = time.perf_counter()
        single()
        times.append(time.perf_counter() - start)
    trip = statistics.median(times) if times else 0
    return {"perSecond": rate, "roundTrip": trip, "sum": sum(answers)}


def with_ray(task, tasks, trips):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    remote = ray.remote(task)
    try:
        return measure(
            lambda count: ray.get([remote.remote(at) for at in range(count)]),
            lambda: ray.get(remote.remote()),
            tasks,
            trips,
        )
    finally:
        ray.shutdown()


def with_dask(task, tasks, trips):
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        return measure(
            lambda count: client.gather(client.map(task, range(count), pure=False)),
            lambda: client.submit(task, pure=False).result(),
            tasks,
            trips,
        )


if __name__ == "__main__":
    which, tasks, trips = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    task = {"noop": noop, "python": python, "numba": numba}[(sys.argv[4:] or ["noop"])[0]]
    figures = {"ray": with_ray, "dask": with_dask}[which](task, tasks, trips)
    print(json.dumps(figures), flush=True)
