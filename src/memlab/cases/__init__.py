"""Programs of the field notes, made small enough to run: what an audited claim is held against."""
