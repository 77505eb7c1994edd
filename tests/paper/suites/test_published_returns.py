"""Published returns: of tasks that the suites have, with their protocols."""

from tsallax.paper.suites.published_returns import all_published
from tsallax.paper.suites.suite_tasks import CONTROL, SUITES


def test_every_published_return_is_of_a_task_and_names_its_protocol():
    tasks = {task for suite in SUITES.values() for task in suite.tasks}
    found = all_published()
    assert {one.task for one in found} <= tasks
    assert {one.task for one in found} >= set(CONTROL.tasks)
    assert all(one.protocol and one.steps >= 50_000 for one in found)
    keys = [(one.task, one.source, one.agent) for one in found]
    assert len(set(keys)) == len(keys)
