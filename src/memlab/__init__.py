"""placeholder until the modules land."""
