"""From other schedulers' jobs to a manifest, and a report of what does not carry over.

Each source has a module that reads it and yields an `Entry` for each of its own; `importing` names
the jobs, checks them as the API would, and `document` writes the manifest. Nothing is created.
"""
