"""The commands that train the runs of a suite again."""

from typing import Any

from small_suites import example_row
from tsallax.cli.app import commands
from tsallax.cli.table_requests import suite_request
from tsallax.paper.suites import suite_commands
from tsallax.paper.suites.suite_cells import gather_suite
from tsallax.paper.suites.suite_jobs import SuiteRequest, agent_options, protocol_of, whole_cycles


def rows_of(request: SuiteRequest) -> list[Any]:
    """Rows of all runs that a request asks for."""
    found = []
    for name in request.tasks:
        task = request.suite.tasks[name]
        protocol = protocol_of(request, task)
        for agent, own in request.agents.items():
            config = agent_options(task, own, request.options)
            steps = whole_cycles(protocol.steps, config)
            found += [
                example_row(
                    suite=request.suite.name, task=name, agent=agent, levels=levels, seed=seed,
                    steps=steps, evaluated=protocol.final_episodes, config=config,
                    evaluations=(), training=(),
                )
                for levels in request.levels
                for seed in range(request.seeds)
            ]  # fmt: skip
    return found


def asked(command: str) -> SuiteRequest:
    """The request of a command."""
    given = commands().commands["reproduce"].make_context("reproduce", command.split()[2:]).params
    options = {name.rstrip("_"): value for name, value in given.items() if value is not None}
    (name,) = options["what"]
    return suite_request(name, options["quick"], options)


def commands_of(*requests: SuiteRequest) -> list[str]:
    rows = [row for request in requests for row in rows_of(request)]
    return suite_commands.commands_for_suite(gather_suite(requests[0].suite.name, rows))


def test_a_command_has_all_that_was_asked_for():
    for command in (
        "tsallax reproduce classic",
        "tsallax reproduce classic --quick --tasks CartPole-v1 --set batch_size=16",
        "tsallax reproduce control",
        "tsallax reproduce control --tasks Hopper,Ant --variants sparse-auto,epsilon --seeds 2 "
        "--steps 300000 --set gamma=0.9 --set net_arch=64,32 --set huber=None",
        "tsallax reproduce control --tasks Ant --variants soft-1 --alphas 1 --levels 3,7",
    ):
        assert commands_of(asked(command)) == [command]


def test_runs_with_other_seeds_steps_or_options_have_a_command_of_their_own():
    parts = [
        "tsallax reproduce classic",
        "tsallax reproduce classic --tasks CartPole-v1,Acrobot-v1 --variants sparse-1,sparse-10 "
        "--alphas 1,10 --set learning_rate=0.5",
        "tsallax reproduce classic --tasks LunarLander-v3 --variants soft-0.1 --seeds 3",
        "tsallax reproduce classic --tasks LunarLander-v3 --variants sparse-0.1 --steps 400",
    ]
    assert sorted(commands_of(*map(asked, parts))) == sorted(parts)


def test_runs_of_another_library_have_its_script_or_none():
    def commands(agent: str, **changes: Any) -> list[str]:
        row = example_row(agent=agent, config={"policy": "MlpPolicy"}, **changes)
        return suite_commands.commands_for_suite(gather_suite("classic", [row]))

    script = "python benchmarks/sb3_suites.py classic --out DIR --tasks CartPole-v1"
    assert commands("sb3-dqn") == [f"{script} --steps 200"]
    assert commands("sb3-dqn", steps=50_000) == [script]
    assert commands("sb3-sac") == []
