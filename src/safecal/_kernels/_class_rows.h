/* The loop over the rows of K classes, included where `score_lanes`, `score_row`, `finish` and `Group` are defined.
   SCORE_ROWS names the function that results. */

INLINE void score(const ClassRows *rows, int single, double *restrict work)
{
    Py_ssize_t n = rows->n, classes = rows->classes;
    double *d = work, *u = work + tile_size(classes);
    Group group;
    memset(&group, 0, sizeof group);
    for (Py_ssize_t at = 0; at < n; at += LANES) {
        Py_ssize_t some = n - at < LANES ? n - at : LANES;
        const int64_t *y = rows->y + at;
        int64_t *top = rows->top + at;
        if (classes <= FEW)
            score_lanes(row_of(rows->values, single, at, classes), single, some, classes, y, d, u, &group, top);
        else
            for (int lane = 0; lane < some; lane++)
                top[lane] = score_row(row_of(rows->values, single, at + lane, classes), single, classes,
                                      (Py_ssize_t)y[lane], d, u, &group, lane);
        finish(&group, some, n, rows->columns + at);
    }
}

FAST static void score_singles(const ClassRows *rows, double *work)
{
    score(rows, 1, work);
}

FAST static void score_doubles(const ClassRows *rows, double *work)
{
    score(rows, 0, work);
}

void SCORE_ROWS(const ClassRows *rows, double *work)
{
    if (rows->single)
        score_singles(rows, work);
    else
        score_doubles(rows, work);
}
