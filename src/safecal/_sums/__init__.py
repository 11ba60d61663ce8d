"""Columns of scored rows, and their sums: everything that is known of the rows once they have been seen.

``scored``         the columns of a block of rows; sums as arrays, made by key and put together; how excess is spread
``summary``        the sums of some rows: `Summary`, or an array with a row for each key
``splits``         which bin or group a row belongs to: `Bins`; the `Plan` of an evaluation
``table``          sums by bin or by group: `Table`
``table_views``    what is read off a table: reliability, the sums of one key, frames
``cells``          the spectrum of two outcomes: cells of their log-odds, and their order
``nodes``          the spectrum of more outcomes: the log-partition at five temperatures, also by group; and their order
``causes``         errors of states by axis and in every direction, classes as predicted and as they happened
``forecasts``      where outcomes fall in forecasts of numbers, of vectors and of draws, scores and widths
``clusters``       what is summed of rows that depend on each other, by cluster
``cluster_pairs``  the same by cluster and group, and by cluster and cell of the predictions
``sweep``          the one pass over the rows that fills all of these
``tally``          all of them together: `Tally`, which every door fills
``tally_parts``    what belongs to it beside sums: several looks at the same rows, groups by one column, documents
"""
