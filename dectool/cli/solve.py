"""``dectool solve``: an algorithm on a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dectool
from dectool import algorithms
from dectool._text import nearest
from dectool.cli import _options as options, _problems, _specs as specs
from dectool.cli._errors import FAILED
from dectool.cli._faults import check_detection, faults
from dectool.cli._output import check_apart, check_target, console, new_figure, number, save_figure
from dectool.errors import ArgumentError
from dectool.problems import L1, Averaging, Composite, Problem
from dectool.run import DETECTION
from dectool.topology import Schedule, Topology

_RANKS = 16
_UNSAID = _problems.Choices()
_DRAWN = ("gap", "distance", "consensus_error")


def solve(
    algorithm: Annotated[
        str, typer.Argument(help=f"One of {', '.join(algorithms.ALGORITHMS)}.", metavar="ALGORITHM")
    ],
    lr: Annotated[
        float | None,
        typer.Option(
            help="Step size; default: 1 / (2 L_max), or what the algorithm suggests.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another parameter of the algorithm."),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="breast_cancer, digits, quadratic:d=10,kappa=10, averaging:d=10, or a FILE.csv or "
            "FILE.libsvm; default: breast_cancer, averaging where no gradient is used.",
            show_default=False,
        ),
    ] = None,
    topology: options.Graph = "ring",
    weights: options.Weights = None,
    n: options.Ranks = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps of each rank; default: 500.", show_default=False),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Run so long, in place of --steps, where ranks wait for nobody.",
            show_default=False,
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=LIMIT", help="Stop when every metric named is so low."),
    ] = None,
    backend: options.Backend = "stacked",
    network: options.Network = None,
    compute: options.Compute = None,
    fault: options.Faults = None,
    detection: options.Detection = DETECTION,
    missing: options.Missing = "error",
    seed: options.Seed = 0,
    loss: Annotated[
        str,
        typer.Option(help="logistic, softmax, least_squares, or auto: by the labels."),
    ] = _UNSAID.loss,
    l2: Annotated[float, typer.Option(help="Factor of the L2 term.")] = _UNSAID.l2,
    l1: Annotated[
        float, typer.Option(help="Factor of an L1 term, which PGEXTRA and NIDS know.")
    ] = 0.0,
    partition: Annotated[
        str,
        typer.Option(metavar="SPEC", help="contiguous, shuffled, by_class:2, dirichlet:0.1."),
    ] = _UNSAID.partition,
    objective: Annotated[
        str, typer.Option(help="mean_of_means or weighted, where shards differ in size.")
    ] = _UNSAID.objective,
    bias: Annotated[bool, typer.Option(help="Add a constant feature.")] = _UNSAID.bias,
    standardize: Annotated[
        bool, typer.Option(help="Bring features to mean 0 and deviation 1.")
    ] = _UNSAID.standardize,
    batch_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="Samples of a gradient; default: all.", show_default=False),
    ] = None,
    record_every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps between records; default: 1.", show_default=False),
    ] = None,
    record_interval: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time between records, with --duration; default: a hundredth of it.",
            show_default=False,
        ),
    ] = None,
    ranks_per_node: options.RanksPerNode = None,
    hosts: options.Hosts = None,
    launcher: options.Launcher = None,
    check: Annotated[
        bool, typer.Option(help="Refuse a topology that the algorithm's theory does not allow.")
    ] = True,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Go on from a saved history or a checkpoint.", show_default=False
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the state to it while the run goes on; --resume goes on from it.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps between checkpoints.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the history (npz).", show_default=False),
    ] = None,
    plot: options.Plot = None,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show a progress bar; default: on a terminal.", show_default=False),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Solve a problem with ALGORITHM on N ranks (16 unless -n, topology or hosts say)."""
    check_detection(detection, fault)
    check_target("--save", save)
    check_target("--plot", plot)
    data = Path(problem) if problem is not None and Path(problem).is_file() else None
    check_apart(("--problem", data), ("--save", save), ("--plot", plot))
    check_apart(("--problem", data), ("--checkpoint", checkpoint), ("--plot", plot))
    figure = None if plot is None else new_figure(plot, 7, 5)
    kind = _kind(algorithm)
    names, ranks = options.split_hosts(hosts, _RANKS)
    graph = specs.topology(topology, n, weights=weights, default=ranks)
    choices = _problems.Choices(loss, l2, partition, objective, bias, standardize, seed)
    name = problem or ("breast_cancer" if kind.uses_gradient else "averaging")
    task = _problems.build(name, graph.size, choices)
    if l1:
        task = Composite(task, L1(l1))
    chosen = _algorithm(kind, lr, settings or [], task, graph)
    history = dectool.solve(
        chosen,
        task,
        topology=graph,
        steps=500 if steps is None and duration is None else steps,
        duration=duration,
        backend=backend,
        network=specs.network(network),
        compute=specs.compute(compute),
        faults=faults(fault),
        detection=detection,
        missing=missing,
        seed=seed,
        batch_size=batch_size,
        record_every=record_every,
        record_interval=record_interval,
        stop=specs.assignments("--stop", stop, specs.real) if stop else None,
        check=check,
        progress=progress,
        resume=resume,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        ranks_per_node=ranks_per_node,
        hosts=names,
        launcher=launcher,
    )
    _show(history, f"{chosen} on {graph.name}, {backend}", repr(task))
    out = console()
    if history.faults is not None:
        out.print(str(history.faults))
    if save is not None:
        out.print(f"history: {history.save(save)}")
    if plot is not None and figure is not None:
        axes = figure.subplots()
        for metric in _DRAWN:
            history.plot(metric, ax=axes, label=metric)
        axes.set_ylabel("")
        axes.set_title(f"{chosen} on {graph.name}", fontsize="medium")
        save_figure(figure, plot)
        out.print(f"picture: {plot}")
    if history.status == "diverged":
        raise typer.Exit(FAILED)


def _kind(name: str) -> type[algorithms.Algorithm]:
    by_lower = {known.lower(): kind for known, kind in algorithms.ALGORITHMS.items()}
    kind = by_lower.get(name.lower())
    if kind is None:
        known = nearest(name, algorithms.ALGORITHMS)
        raise ArgumentError(f"algorithm {name!r} is unknown; {known}")
    return kind


def _algorithm(
    kind: type[algorithms.Algorithm],
    lr: float | None,
    settings: list[str],
    problem: Problem,
    graph: Topology | Schedule,
) -> algorithms.Algorithm:
    """Return the algorithm with its parameters; those that were not given are as it suggests."""
    parameters: dict[str, Any] = specs.assignments("--set", settings, specs.value)
    if lr is not None:
        if "lr" in parameters:
            raise ArgumentError(
                f"--lr {lr:g} and --set lr={parameters['lr']} are both given; leave one of them out"
            )
        parameters["lr"] = lr
    if not kind.uses_gradient and not isinstance(problem, Averaging):
        raise ArgumentError(
            f"{kind.__name__} uses no gradient: it averages what the ranks start with, which is "
            f"zero for {problem.name}; leave --problem out, or use --problem averaging"
        )
    suggested = {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in kind.suggested(problem, graph).items()
    }
    return algorithms.get(kind.__name__, **{**suggested, **parameters})


def _show(history: dectool.History, title: str, problem: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    last = history.last
    rank = int(last["worst_rank"])
    rows = {
        "status": history.status,
        "step": number(history.step),
        "time": f"{number(last['time'])} s",
        "messages": number(int(last["messages"])),
        "bytes": number(int(last["bytes"])),
        "objective": number(last["objective"]),
        "gap": number(last["gap"]),
        "gradient norm": number(last["grad_norm"]),
        "consensus error": number(last["consensus_error"]),
        "distance to x*": number(last["distance"]),
        "worst rank": f"{rank}, at {number(last['worst_distance'])} from x*",
        "rate per step": number(history.rate()),
    }
    table = Table(title=escape(title), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("problem", escape(problem))
    for name, text in rows.items():
        table.add_row(name, text)
    console().print(table)
