"""What maps do, in words."""

__all__ = ["class_shifts", "moved", "said", "scaled"]

_SLIGHT = 0.02  # of a shift or of the logarithm of a slope: nothing to speak of


def moved(shift: float) -> str:
    """Say what a shift does to log-odds."""
    return "hardly moved" if abs(shift) < _SLIGHT else f"moved {'up' if shift > 0.0 else 'down'} by {abs(shift):.2g}"


def scaled(slope: float) -> str:
    """Say what a slope does."""
    if abs(slope - 1.0) < _SLIGHT:
        return "hardly scaled"
    return f"{'shrunk' if slope < 1.0 else 'stretched'} by a factor of {slope:.2g}"


def class_shifts(shifts: tuple[float, ...]) -> str:
    """Say which classes gain and lose most."""
    up, down = max(range(len(shifts)), key=shifts.__getitem__), min(range(len(shifts)), key=shifts.__getitem__)
    if shifts[up] - shifts[down] < _SLIGHT:
        return "classes hardly move"
    return f"class {up} gains most ({shifts[up]:+.2g}) and class {down} loses most ({shifts[down]:+.2g})"


def said(*parts: str) -> str:
    """Join parts into a sentence."""
    text = ", and ".join(parts)
    return f"{text[0].upper()}{text[1:]}."
