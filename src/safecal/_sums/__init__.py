"""Columns of scored rows, and their sums: everything that is known of the rows once they have been seen.

``scored``           the columns of a block of rows, and sums as arrays, made by key and put together
``summary``          the sums of some rows: `Summary`, or an array with a row for each key
``splits``           which bin or group a row belongs to: `Bins`; the `Plan` of an evaluation
``table``            sums by bin or by group: `Table`
``table_views``      what is read off a table: reliability, the sums of one key, frames
``cells``            the spectrum of two outcomes: cells of their log-odds, and their order
``nodes``            the spectrum of more outcomes: the log-partition at five temperatures, also by group
``ordered``          sums by cell of the predictions in their order, of which ranges are made
``histogram``        how the excess is spread
``causes``           errors of states by axis and in every direction, classes as predicted and as they happened
``forecasts``        where outcomes fall in forecasts of numbers, of vectors and of draws, scores and widths
``clusters``         what is summed of rows that depend on each other, by cluster
``cluster_pairs``    the same by cluster and group, and by cluster and cell of the predictions
``looks``            several looks at the same rows: what each may decide, and the decision of all
``sweep``            the one pass over the rows that fills all of these
``tally``            all of them together: `Tally`, which every door fills
``by_column``        groups by several columns at once: a Tally for each column by itself
``tally_documents``  a Tally as JSON, and whether its parts belong together
"""
