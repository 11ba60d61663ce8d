"""The pictures of forecasts: where outcomes fall in them, and along which axis they are too narrow."""

from ..html.diagrams import transform_picture, transform_words
from ..html.frame import figure
from ..html.intervals import directions_picture
from ..html.markup import Markup
from ..inference.forecasts import Forecast

__all__ = ["forecast_figures"]

_MOST_AXES = 4  # that have a picture each


def forecast_figures(forecast: Forecast) -> list[Markup]:
    """Return the histogram of the transform; of vectors the factor of each axis, too, and of draws their histograms."""
    picture, said = transform_picture("transform", forecast), transform_words(forecast)
    found = [figure("Where do outcomes fall in their forecasts?", picture, said)]
    if forecast.vector is None and not forecast.axes:
        return found
    sides = "How many times the standard deviations of the draws are too small, with intervals that hold together."
    if (vector := forecast.vector) is not None:
        sides = f"The widest direction: {vector.largest}. The narrowest: {vector.smallest}."
    found.append(figure("Along which axis is it too narrow?", directions_picture("directions", forecast), sides))
    for k, axis in enumerate(forecast.axes[:_MOST_AXES]):
        image = transform_picture(f"transform-{k}", axis)
        found.append(figure(f"Where do outcomes fall along axis {k}?", image, transform_words(axis)))
    return found
