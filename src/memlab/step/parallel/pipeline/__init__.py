"""A pipeline in a simulated step: its schedules, its stages, and the two steps of each rank."""
