"""Functions that the cards of this folder offer as tools."""


def refund(paid: float, days: int) -> float:
    """The sum that is paid back.

    Args:
        paid: What was paid.
        days: How many days ago that was.
    """
    return round(paid if days <= 30 else paid / 2, 2)
