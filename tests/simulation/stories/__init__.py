"""Stories: a few jobs, each under one fault or request that is chosen, in virtual time."""
