"""Records what Gymnasium's environments do from given states, for mod.rs to compare: gymnasium 1.4.0, mujoco 3.17.0.

    pip install gymnasium==1.4.0 mujoco==3.17.0 imageio packaging
    python record.py > trajectories.json
"""

import json
import sys

import gymnasium
import numpy


def record(name, start, count):
    """An episode of random actions, some of them beyond the actuators' range, from a state of its own."""
    random = numpy.random.default_rng(7)
    env = gymnasium.make(name).unwrapped
    env.reset(seed=0)
    qpos = env.init_qpos + start * random.uniform(-1, 1, env.model.nq)
    qvel = env.init_qvel + start * random.uniform(-1, 1, env.model.nv)
    env.set_state(qpos, qvel)
    steps = []
    for _ in range(count):
        action = random.uniform(-1.2, 1.2, env.model.nu).round(3)
        observation, reward, terminated, _, _ = env.step(action)
        steps.append(
            {
                "action": action.tolist(),
                "observation": observation.round(12).tolist(),
                "reward": round(float(reward), 12),
                "terminated": bool(terminated),
            }
        )
        if terminated:
            break
    return {"qpos": qpos.tolist(), "qvel": qvel.tolist(), "steps": steps}


RECORDS = [("HalfCheetah-v5", 0.1, 25), ("Hopper-v5", 0.005, 25), ("Walker2d-v5", 0.005, 25), ("Humanoid-v5", 0.01, 8)]
json.dump({name: record(name, start, count) for name, start, count in RECORDS}, sys.stdout)
print()
