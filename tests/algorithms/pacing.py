"""What tests of asynchronous algorithms share: runs that end at a time, and linear expectations."""

import numpy as np

import dectool
from dectool import problems, topology

H = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
B = np.arange(8.0)[:, None]
N, RING = 8, topology.ring(8)


def quadratic():
    """The Q8 problem; its optimum is 1.4."""
    return problems.Quadratic(h=H, b=B)


def solve(algorithm, graph=RING, steps=100, problem=None, **options):
    """Solve on the simulator."""
    return dectool.solve(
        algorithm,
        quadratic() if problem is None else problem,
        topology=graph,
        steps=steps,
        backend="sim",
        **options,
    )


def run_until(horizon, algorithm, problem, graph, **options):
    """Step every rank until a time; return for each rank its states, the first included.

    With ``solve`` all ranks take equally many steps, and those that are done leave the others
    alone; here they work side by side all the time.
    """

    def program(comm):
        def grad(x):
            with comm.computing():
                return problem.grad(x, comm.rank)

        x0 = problem.initial(comm.rank)
        states = [algorithm.at(0).init(comm, x0, grad)]
        while comm.now() < horizon:
            k = len(states) - 1
            states.append(algorithm.at(k).step(comm, states[-1], grad))
        return states

    return dectool.run(program, topology=graph, backend="sim", **options).values


def last(states):
    """Return the last x of every rank."""
    return np.array([each[-1].x for each in states])


def stationary_mean(events):
    """Return the mean z that events z <- A z + c of given rates leave as it is."""
    size = len(events[0][2])
    drift, push = np.zeros((size, size)), np.zeros(size)
    for rate, A, c in events:
        drift += rate * (A - np.eye(size))
        push += rate * c
    return np.linalg.solve(drift, -push)


def mean_and_error(samples, batches=20):
    """Return the mean of samples that depend on each other, and its standard error."""
    usable = samples[: len(samples) // batches * batches]
    means = np.asarray(usable).reshape(batches, -1).mean(axis=1)
    return means.mean(), means.std(ddof=1) / np.sqrt(batches)
