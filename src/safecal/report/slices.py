"""For whom: the section of the report about slices of the features."""

from ..html.findings import Findings
from ..html.frame import figure, region, section
from ..html.markup import Markup, element, sentence, together
from ..html.numbers import percent, plain
from ..html.slices import slices_picture, slices_table

__all__ = ["slices_section"]

_LISTED = 10  # features that were left out


def slices_section(findings: Findings) -> Markup | None:
    """Return the slices that were found, as bars with their intervals and as a table; None where none were sought."""
    slices = findings.evaluation.slices
    if slices is None:
        return None
    limit = findings.verdict.limits.local_threshold
    parts: list[Markup] = [element("p", together(sentence(slices.sentence)), class_="lead")]
    image = slices_picture("slices-found", slices, limit)
    if image is not None:
        caption = (
            "Each bar is a slice: the rows that fulfil its conditions. It was found on one half of the rows, and this "
            f"is what the other half tells. The intervals hold together at {percent(slices.level)}. Of a calibrated "
            f"model none would be here, as a rule; {plain(limit)} nat a dimension is allowed."
        )
        parts += [figure("Slices, the worst first", image, caption), region(slices_table(slices), "The slices")]
    if slices.left_out:
        said = "; ".join(f"{name}: {why}" for name, why in slices.left_out[:_LISTED])
        more = f"; and {len(slices.left_out) - _LISTED} more" if len(slices.left_out) > _LISTED else ""
        parts.append(element("p", together(f"Features that were left out: {said}{more}."), class_="note"))
    return section("slices", "For whom", *parts)
