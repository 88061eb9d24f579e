"""/apply: the jobs and calendars of a manifest, compared with what is stored and carried out."""
