"""The best algorithms next to the best of the paper."""

from made_up_rows import table
from tsallax.paper.sweep.sweep_tasks import REACHER, paper_results
from tsallax.paper.tables.paper_comparison import comparison


def test_best_of_each_exploration_is_beside_the_papers(result):
    lines = table(result, "best")
    assert len(lines) == 12
    line = next(x for x in lines if (x["exploration"], x["actions"]) == ("softmax", 121))
    assert (line["paper's best"], line["of, there"]) == (-5.3, "Soft+Bellman-0.01")
    assert (line["paper's fewest"], line["by, there"]) == (4597, "Soft+SoftBellman-0.01")
    assert line["of"].startswith("Soft+")


def test_the_best_return_at_each_number_of_actions_is_compared(data):
    lines = {line.what: line for line in comparison(data)}
    paper = paper_results(REACHER)
    for n in REACHER.actions:
        line = lines[f"best return at {n:,} actions"]
        best = max(data.greedy[cell].mean() for cell in data.greedy if cell[1] == n)
        top = max(cell.expected_return for (_, m), cell in paper.items() if m == n)
        assert line.ours.replace("−", "-").startswith(f"{best:.2f}")
        assert line.paper.replace("−", "-").startswith(f"{top:.1f}")
    assert lines["DDPG: expected return"].paper == "−10.1"
