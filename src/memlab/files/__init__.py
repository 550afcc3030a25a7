"""What is read from outside and never trusted: snapshots, timelines, records, claims."""
