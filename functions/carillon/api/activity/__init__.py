"""The activity feed of an owner: `GET /runs` and what it sums up to."""
