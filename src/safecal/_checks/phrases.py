"""What a message tells people to type, in Python. Other surfaces have a dictionary with the same keys."""

__all__ = ["PYTHON"]

PYTHON = {
    # rules
    "zero or one": "must be 0 or 1 when `pos_label` is not given",
    "class number": "must be a class number from 0 to {last} when `labels` is not given",
    "one of labels": "must be one of `labels` ({names})",
    "one other label": "must hold `pos_label` ({label}) and at most one other label",
    "a label that occurs": "must be one of the labels in `y_true`",
    "names columns": "names the columns of an (n, K) prediction",
    "a value a row": "`{name}` of shape (n,)",
    "belongs to one": "belongs to a prediction of shape (n,)",
    "a value a class": "`{name}` of shape {shape}",
    # hints
    "drop": "drop or fill those rows first: safecal drops nothing by itself.",
    "a form": "`y_prob` for probabilities, `logits=` for log-odds or unnormalised log-probabilities.",
    "log-odds": "these look like log-odds: pass them as `logits=`.",
    "percentages": "these look like percentages: pass `{name} / 100`.",
    "out by rounding": "if that is rounding, pass `np.clip({name}, 0, 1)`.",
    "nothing to clip": "logits never saturate, so there is nothing to clip: leave `clip` out.",
    "swapped": "the arguments seem swapped: outcomes come first, as in `evaluate(y_true, {given})`.",
    "positive, for example": "say which outcome is the positive one, for example `pos_label={label!r}`.",
    "positive": "say which outcome is the positive one with `pos_label=`.",
    "a tie": "a tie or a share is not an outcome: drop those rows first.",
    "never occurs": "the labels that occur: {shown}.",
    "never happened": "the labels that occur: {shown}. If yours merely never happened, pass `y_true == {label}` as"
    " outcomes, without `pos_label`.",
    "a column a class": "for more than two classes pass `y_prob` with one column for each class.",
    "name the classes": "name the columns of `{name}` in their order, for example `labels={names}`.",
    "other names": "classes are numbered from 0; if yours have other names, pass `labels=` in the order of the"
    " columns.",
    "from 1": "these seem to be numbered from 1: pass `y_true - 1`, or `labels={numbers}`.",
    "from 1, or never 0": "if classes are numbered from 1, pass `y_true - 1`; if 0 never happened, `labels={numbers}`.",
    "names of columns": "for one probability a row, name the positive class with `pos_label=`.",
    "one column": "for one column a class, name the columns with `labels=`.",
    "rounded sums": "these look rounded to {decimals} decimals: pass {divided}.",
    "rounded sums and zeros": "these look rounded to {decimals} decimals: pass {divided}, with `clip={clip:g}`, because"
    " a rounded 0 is not impossible.",
    "short floats": "{dtype} rounds too much for this: pass `logits=`, or normalise in float32: {divided}.",
    "other sums": "if they are unnormalised, pass {divided}; if they are log-probabilities or scores, pass them as"
    " `logits=`.",
    "ratios of weights": "only their ratios matter: pass `{name} / {name}.mean()`.",
    "decisions": "these are decisions; a probability is a number such as 0.83.",
    "convert": "convert the column first, for example `{name}.astype(float)`.",
}
