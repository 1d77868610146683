"""Peers of `bench farm`: no-op tasks with Ray or Dask, each by its own best practice.

    peers.py (ray|dask) TASKS ROUND_TRIPS

Prints one JSON object: tasks per second of one large batch, and the median seconds of a single task.
"""

import json
import statistics
import sys
import time


def noop(_=None):
    return None


def measure(batch, single, tasks, trips):
    batch(min(tasks, 500))  # workers and caches warm
    start = time.perf_counter()
    batch(tasks)
    rate = tasks / (time.perf_counter() - start)
    times = []
    for _ in range(trips):
        start = time.perf_counter()
        single()
        times.append(time.perf_counter() - start)
    return {"perSecond": rate, "roundTrip": statistics.median(times)}


def with_ray(tasks, trips):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    task = ray.remote(noop)
    try:
        return measure(
            lambda count: ray.get([task.remote() for _ in range(count)]),
            lambda: ray.get(task.remote()),
            tasks,
            trips,
        )
    finally:
        ray.shutdown()


def with_dask(tasks, trips):
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        return measure(
            lambda count: client.gather(client.map(noop, range(count), pure=False)),
            lambda: client.submit(noop, pure=False).result(),
            tasks,
            trips,
        )


if __name__ == "__main__":
    which, tasks, trips = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    figures = {"ray": with_ray, "dask": with_dask}[which](tasks, trips)
    print(json.dumps(figures), flush=True)
