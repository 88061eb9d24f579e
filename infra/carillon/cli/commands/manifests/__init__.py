"""Commands about manifests: diff, apply, export."""
