"""Draws the plots of the laboratory: `python plots.py plots.json folder [svg|png]`."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg" if sys.argv[3:] != ["png"] else "agg")
import matplotlib.pyplot as plt

# Every policy looks the same in all plots, in the colours of Okabe and Ito, which most people can tell apart.
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"
STYLES = {
    "thompson": (BLUE, "-"),
    "ucb1": (ORANGE, "-"),
    "exp3": (GREEN, "-"),
    "epsilon_greedy": (PINK, "-"),
    "linucb": (YELLOW, "-"),
    "exp4": (SKY, "-"),
    "vote": (BLACK, "--"),
    "best": (ORANGE, "--"),
    "cascade": (GREEN, "--"),
    "first_acceptable": (PINK, "--"),
    "stacking": (GREEN, "-"),
    "mean": (PINK, "-"),
    "median": (ORANGE, "-"),
    "logistic": (GREEN, "-"),
}
WITHOUT_DATE = {"svg": {"Date": None}, "png": {}}


def main() -> None:
    plots, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    suffix = sys.argv[3] if len(sys.argv) > 3 else "svg"
    plt.rcParams |= {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "lab", "path.simplify_threshold": 0.5}
    folder.mkdir(parents=True, exist_ok=True)
    for plot in plots:
        figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
        draw_lines(axes, plot) if "lines" in plot else draw_groups(axes, plot)
        axes.set(title=plot["title"], xlabel=plot["x"], ylabel=plot["y"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", linewidth=0.4, alpha=0.6)
        axes.set_axisbelow(True)
        figure.savefig(folder / f"{plot['file']}.{suffix}", metadata=WITHOUT_DATE[suffix])
        plt.close(figure)


def draw_lines(axes, plot: dict) -> None:
    """Medians, the highest in the end first in the legend, with the range of all seeds around them."""
    for line in sorted(plot["lines"], key=lambda line: -line["middle"][-1]):
        color, dashes = STYLES[line["name"]]
        axes.plot(line["queries"], line["middle"], label=line["name"], linewidth=1.5, color=color, linestyle=dashes)
        axes.fill_between(line["queries"], line["low"], line["high"], color=color, alpha=0.12, linewidth=0)
    for mark in plot.get("marks", []):
        axes.axvline(mark, color="#888888", linewidth=0.8)
    for level in plot.get("levels", []):
        axes.plot([level["from"], level["to"]], [level["at"]] * 2, color="#444444", linewidth=1.2, linestyle=(0, (4, 3)))
    if plot["file"].startswith("regret"):
        axes.axhline(0, color="#444444", linewidth=0.8)
    axes.margins(x=0.01)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def draw_groups(axes, plot: dict) -> None:
    """A bar for the best single model of every seed, and a dot for each policy."""
    best, *policies = plot["groups"]
    seeds = range(len(best["values"]))
    axes.bar(seeds, best["values"], width=0.8, color="#DDDDDD", label=best["name"])
    for i, group in enumerate(policies):
        at = [seed + 0.6 * ((i + 0.5) / len(policies) - 0.5) for seed in seeds]
        axes.scatter(at, group["values"], label=group["name"], s=22, color=STYLES[group["name"]][0], zorder=3)
    axes.set_xticks(seeds)
    axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


if __name__ == "__main__":
    main()
