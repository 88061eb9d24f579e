"""Jobs as code: the manifest, one file that is rehearsed, reviewed and applied."""
