"""The family of actors with critics on a replay memory: deterministic and soft actors, their noise."""
