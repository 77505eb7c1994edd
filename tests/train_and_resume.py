"""Train to the end from wherever a file left off: run, killed and run again by test_killed."""

import sys
from pathlib import Path

from small_agents import TINY
from tsallax import DeepQ

if __name__ == "__main__":
    env, file, amount = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if file.exists():
        agent = DeepQ.load(file)
    else:
        agent = DeepQ(env, actions=3 if env == "MultiGoal-v0" else None, seed=1, **TINY)
    print(agent.steps, flush=True)
    done, unit = (
        (agent.steps, "steps") if env == "MultiGoal-v0" else (agent.history.episodes, "episodes")
    )
    if done < amount:
        agent.learn(**{unit: amount}, save_to=file, save_every=40, progress=False)
