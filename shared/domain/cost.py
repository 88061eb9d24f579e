"""What firing costs: an estimate in US dollars, by the budget of DESIGN section 7."""


def dollars_of_fires(fires: int) -> float:
    """US dollars for so many fires, on demand in us-east-1, without the target's own cost."""
    raise NotImplementedError
