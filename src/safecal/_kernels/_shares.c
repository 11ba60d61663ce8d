/* Predictions over K classes from probabilities, used as given: the columns of `categorical.py`, eight rows at a time.

   The tiles hold `u = p` and `d = log p`. */

#include "_nodes.h"

typedef struct {
    double weighted[LANES], square[LANES]; /* sums of u d and u u over all classes but the one that happened */
} Weights;

typedef struct {
    Weights weights;
    Moments moments;
    Nodes nodes;
    double mean[LANES], share[LANES], log_share[LANES], largest[LANES]; /* u and d of the class that happened; top u */
} Group;

/* log p; 0 for p = 0, where every product with it is 0. */
INLINE double log_of(double p)
{
    double tiny = p < 1e-300 ? p * 0x1p64 : p, normal = p > 0.0 ? tiny : 1.0;
    return log_near(normal, 0.0) - (p > 0.0 && p < 1e-300 ? 4.43614195558364983185e+01 : 0.0); /* 64 log 2 */
}

/* Fill d and the sums of a tile; meanwhile the next one comes from memory. */
INLINE void weigh(double *restrict d, const double *restrict u, Py_ssize_t size, Weights *restrict sums,
                  const char *next, int item)
{
    memset(sums, 0, sizeof *sums);
    for (Py_ssize_t from = 0; from < size; from += STRETCH) {
        Py_ssize_t to = size - from < STRETCH ? size : from + STRETCH;
        Weights part;
        memset(&part, 0, sizeof part);
        for (Py_ssize_t i = from; i < to; i += LANES) {
            PREFETCH(next + i * item);
            EACH_LANE(lane) {
                double w = u[i + lane], x = log_of(w);
                d[i + lane] = x;
                part.weighted[lane] += w * x;
                part.square[lane] += w * w;
            }
        }
        EACH_LANE(lane) {
            sums->weighted[lane] += part.weighted[lane];
            sums->square[lane] += part.square[lane];
        }
    }
}

/* From log p to the difference from that of the top class. */
INLINE double below_top(double p, double log_p, double log_top)
{
    double d = p > 0.0 ? log_p - log_top : LEAST_AT_NODES;
    return d > LEAST_AT_NODES ? d : LEAST_AT_NODES;
}

/* Many classes: one row, into one lane of its group. */
INLINE Py_ssize_t score_row(const void *p, int single, int nodes, Py_ssize_t classes, Py_ssize_t y, double *restrict d,
                            double *restrict u, Group *restrict group, int lane)
{
    double share = value_at(p, single, y), log_share = log_of(share), mean[LANES];
    Py_ssize_t size = tile_size(classes), top;
    const char *next = row_of(p, single, 1, classes);
    int item = single ? 4 : 8;
    Weights weights;
    Moments moments;
    for (Py_ssize_t i = 0; i < classes; i++)
        u[i] = value_at(p, single, i);
    for (Py_ssize_t i = classes; i < size; i++)
        u[i] = 0.0;
    u[y] = 0.0;
    weigh(d, u, size, &weights, next, item);
    u[y] = share, d[y] = log_share;
    group->weights.square[lane] = added(weights.square);
    group->mean[lane] = added(weights.weighted) + share * log_share;
    EACH_LANE(k)
        mean[k] = group->mean[lane];
    centre(d, u, size, mean, &moments);
    group->moments.second[lane] = added(moments.second);
    group->moments.third[lane] = added(moments.third);
    group->share[lane] = share;
    group->log_share[lane] = log_share;
    group->largest[lane] = largest_of(p, single, classes);
    top = place_of(p, single, classes, group->largest[lane]);
    if (nodes) {
        double log_top = d[top];
        for (Py_ssize_t i = 0; i < size; i += LANES)
            EACH_LANE(k)
                d[i + k] = below_top(u[i + k], d[i + k], log_top);
        nodes_of_row(d, u, size, top, next, item, &group->nodes, lane);
    }
    return top;
}

/* Few classes: `rows` rows at once, at most eight. */
INLINE void score_lanes(const void *p, int single, int nodes, Py_ssize_t rows, Py_ssize_t classes, const int64_t *y,
                        double *restrict d, double *restrict u, Group *restrict group, int64_t *restrict top)
{
    Py_ssize_t size = tile_size(classes), at[LANES];
    const char *next = row_of(p, single, LANES, classes);
    int item = single ? 4 : 8;
    load_lanes(p, single, rows, classes, u, group->largest, at);
    for (int lane = 0; lane < LANES; lane++) {
        Py_ssize_t place = (Py_ssize_t)y[lane < rows ? lane : 0] * LANES + lane;
        group->share[lane] = u[place];
        u[place] = 0.0;
    }
    weigh(d, u, size, &group->weights, next, item);
    EACH_LANE(lane) {
        group->log_share[lane] = log_of(group->share[lane]);
        group->mean[lane] = group->weights.weighted[lane] + group->share[lane] * group->log_share[lane];
    }
    for (int lane = 0; lane < rows; lane++) {
        Py_ssize_t place = (Py_ssize_t)y[lane] * LANES + lane;
        u[place] = group->share[lane], d[place] = group->log_share[lane];
        top[lane] = at[lane];
    }
    centre(d, u, size, group->mean, &group->moments);
    if (nodes) {
        double log_top[LANES];
        EACH_LANE(lane)
            log_top[lane] = log_of(group->largest[lane]);
        for (Py_ssize_t i = 0; i < size; i += LANES)
            EACH_LANE(lane)
                d[i + lane] = below_top(u[i + lane], d[i + lane], log_top[lane]);
        nodes_of_lanes(d, u, size, at, next, item, &group->nodes);
    }
}

/* From the sums of eight rows to their columns. */
INLINE void finish(const Group *restrict group, Py_ssize_t rows, Py_ssize_t n, double *restrict columns)
{
    const double infinity = from_bits(0x7ff0000000000000ULL);
    double out[SCORES][LANES];
    EACH_LANE(lane) {
        double share = group->share[lane], rest = 1.0 - share;
        out[0][lane] = share > 0.0 ? group->mean[lane] - group->log_share[lane] : infinity;
        out[1][lane] = group->moments.second[lane];
        out[2][lane] = 0.0 - group->moments.third[lane];
        out[3][lane] = share > 0.0 ? 0.0 - group->log_share[lane] : infinity;
        out[4][lane] = 0.0 - group->mean[lane];
        out[5][lane] = group->weights.square[lane] + rest * rest;
        out[6][lane] = group->largest[lane];
    }
    write_lanes(out, SCORES, rows, n, columns);
}

#define SCORE_ROWS safecal_score_shares
#include "_class_rows.h"
