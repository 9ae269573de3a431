"""What the clerk can look up. A real one would ask a database here."""

ORDERS = {
    "A-1": "sent two days ago",
    "B-7": "packed, leaves tomorrow",
    "C-3": "delivered on Monday",
}


def find_order(number: str) -> str:
    """Tells where an order is.

    Args:
        number: The number of the order, such as A-1.
    """
    if number not in ORDERS:
        raise LookupError(f"there is no order {number}")
    return ORDERS[number]
