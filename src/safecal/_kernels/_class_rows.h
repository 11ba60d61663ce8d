/* The loop over the rows of K classes, included where `score_lanes`, `score_row`, `finish` and `Group` are defined.
   SCORE_ROWS names the function that results. */

INLINE void score(const ClassRows *rows, int single, int nodes, double *restrict work)
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
            score_lanes(row_of(rows->values, single, at, classes), single, nodes, some, classes, y, d, u, &group,
                        top);
        else
            for (int lane = 0; lane < some; lane++)
                top[lane] = score_row(row_of(rows->values, single, at + lane, classes), single, nodes,
                                      classes, (Py_ssize_t)y[lane], d, u, &group, lane);
        finish(&group, some, n, rows->columns + at);
        if (nodes)
            write_nodes(&group.nodes, some, n, rows->nodes + at);
    }
}

#define SCORE(name, single, nodes)                                                                                     \
    FAST static void name(const ClassRows *rows, double *work)                                                         \
    {                                                                                                                  \
        score(rows, single, nodes, work);                                                                              \
    }

SCORE(score_floats, 1, 0)
SCORE(score_doubles, 0, 0)
SCORE(score_floats_and_nodes, 1, 1)
SCORE(score_doubles_and_nodes, 0, 1)

void SCORE_ROWS(const ClassRows *rows, double *work)
{
    if (rows->nodes && rows->single)
        score_floats_and_nodes(rows, work);
    else if (rows->nodes)
        score_doubles_and_nodes(rows, work);
    else if (rows->single)
        score_floats(rows, work);
    else
        score_doubles(rows, work);
}
