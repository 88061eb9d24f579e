"""The settings of a job: each is declared once, and everything else derives from that."""
