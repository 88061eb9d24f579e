"""Changes: each says who did what, and in what two versions differ."""
