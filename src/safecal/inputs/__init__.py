"""Tables of predictions, wherever they lie: one reader of columns for files, frames, streams and `safecal watch`.

``columns``       which column holds what, named or found by name; ``states`` does the same for several components
``values``        a column of any library as an array, with its missing values
``reader``        columns become checked batches; what no batch can see alone is checked across them
``sources``       files and standard input; ``text_files`` reads CSV and JSON Lines without Polars
``logs``          logs of language models as tables: ``questions`` reads a line with choices, ``tokens`` one answer
``trajectories``  files of poses over time
``estimators``    fitted classifiers of scikit-learn's kind
"""
