/* Predictions over K classes from logits: the columns of `categorical.py`, eight rows at a time.

   The tiles hold `d = logit - largest logit` and `u = exp(d)`. */

#include "_tiles.h"

#define SHARP 1e-20 /* below it, exp turns the rounding of a large gap into a relative error */

typedef struct {
    double rest[LANES], weighted[LANES], square[LANES]; /* sums of u, u d, u u over all classes but the top one */
} Weights;

typedef struct {
    Weights weights;
    Moments moments;
    double gap[LANES], weight[LANES], right[LANES]; /* d and u of the class that happened; 1 where it is the top one */
} Group;

INLINE double limited(double d)
{
    return d > LEAST ? d : LEAST; /* -inf, too: u is 0 there, and so is every product with it */
}

/* Fill u and the sums of a tile; meanwhile the next one comes from memory. */
INLINE void weigh(const double *restrict d, double *restrict u, Py_ssize_t size, Weights *restrict sums,
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
                double x = d[i + lane], w = exp_of(x);
                u[i + lane] = w;
                part.rest[lane] += w;
                part.weighted[lane] += w * x;
                part.square[lane] += w * w;
            }
        }
        EACH_LANE(lane) {
            sums->rest[lane] += part.rest[lane];
            sums->weighted[lane] += part.weighted[lane];
            sums->square[lane] += part.square[lane];
        }
    }
}

/* Put back into u what the rounding of d lost, and add up again: one row, its elements `step` apart. */
static void sharpen(const void *z, int single, Py_ssize_t classes, Py_ssize_t top, const double *d, double *u,
                    Py_ssize_t step, double *rest, double *weighted, double *square)
{
    double b = value_at(z, single, top);
    *rest = *weighted = *square = 0.0;
    for (Py_ssize_t k = 0; k < classes; k++) {
        double a = value_at(z, single, k), x = d[k * step], back = x - a, w;
        if (k == top || !(x > LEAST))
            continue;
        w = u[k * step] * (1.0 + ((a - (x - back)) - (b + back)));
        u[k * step] = w;
        *rest += w;
        *weighted += w * x;
        *square += w * w;
    }
}

/* Many classes: one row, into one lane of its group. */
INLINE Py_ssize_t score_row(const void *z, int single, Py_ssize_t classes, Py_ssize_t y, double *restrict d,
                            double *restrict u, Group *restrict group, int lane)
{
    double largest = largest_of(z, single, classes), mean[LANES];
    Py_ssize_t top = place_of(z, single, classes, largest), size = tile_size(classes);
    Weights weights;
    Moments moments;
    double rest, weighted, square;
    for (Py_ssize_t i = 0; i < classes; i++)
        d[i] = limited(value_at(z, single, i) - largest);
    for (Py_ssize_t i = classes; i < size; i++)
        d[i] = LEAST;
    d[top] = LEAST;
    weigh(d, u, size, &weights, row_of(z, single, 1, classes), single ? 4 : 8);
    rest = added(weights.rest), weighted = added(weights.weighted), square = added(weights.square);
    if (rest < SHARP)
        sharpen(z, single, classes, top, d, u, 1, &rest, &weighted, &square);
    d[top] = 0.0, u[top] = 1.0;
    EACH_LANE(k)
        mean[k] = weighted / (1.0 + rest);
    centre(d, u, size, mean, &moments);
    group->weights.rest[lane] = rest;
    group->weights.weighted[lane] = weighted;
    group->weights.square[lane] = square;
    group->moments.second[lane] = added(moments.second);
    group->moments.third[lane] = added(moments.third);
    group->gap[lane] = value_at(z, single, y) - largest;
    group->weight[lane] = u[y];
    group->right[lane] = y == top;
    return top;
}

/* Few classes: `rows` rows at once, at most eight. */
INLINE void score_lanes(const void *z, int single, Py_ssize_t rows, Py_ssize_t classes, const int64_t *y,
                        double *restrict d, double *restrict u, Group *restrict group, int64_t *restrict top)
{
    double largest[LANES], mean[LANES];
    Py_ssize_t size = tile_size(classes), at[LANES];
    load_lanes(z, single, rows, classes, d, largest, at);
    for (Py_ssize_t i = 0; i < size; i += LANES)
        EACH_LANE(lane)
            d[i + lane] = limited(d[i + lane] - largest[lane]);
    for (int lane = 0; lane < LANES; lane++)
        d[at[lane] * LANES + lane] = LEAST;
    weigh(d, u, size, &group->weights, row_of(z, single, LANES, classes), single ? 4 : 8);
    for (int lane = 0; lane < rows; lane++)
        if (group->weights.rest[lane] < SHARP)
            sharpen(row_of(z, single, lane, classes), single, classes, at[lane], d + lane, u + lane, LANES,
                    group->weights.rest + lane, group->weights.weighted + lane, group->weights.square + lane);
    for (int lane = 0; lane < LANES; lane++)
        d[at[lane] * LANES + lane] = 0.0, u[at[lane] * LANES + lane] = 1.0;
    EACH_LANE(lane)
        mean[lane] = group->weights.weighted[lane] / (1.0 + group->weights.rest[lane]);
    centre(d, u, size, mean, &group->moments);
    for (int lane = 0; lane < rows; lane++) {
        group->gap[lane] = value_at(z, single, lane * classes + (Py_ssize_t)y[lane]) - largest[lane];
        group->weight[lane] = u[y[lane] * LANES + lane];
        top[lane] = at[lane];
        group->right[lane] = y[lane] == top[lane];
    }
}

/* From the sums of eight rows to their columns. */
INLINE void finish(const Group *restrict group, Py_ssize_t rows, Py_ssize_t n, double *restrict columns)
{
    double out[SCORES][LANES];
    EACH_LANE(lane) {
        double rest = group->weights.rest[lane], square = group->weights.square[lane], total = 1.0 + rest;
        double gap = group->gap[lane], w = group->weight[lane], others = total - w;
        double mean = group->weights.weighted[lane] / total, log_total = log_of_one_plus(rest);
        double wrong = square + 1.0 - w * w + others * others; /* Brier: 1 - p_top is rest / total, nothing cancels */
        double brier = group->right[lane] != 0.0 ? square + rest * rest : wrong;
        out[0][lane] = mean - gap;
        out[1][lane] = group->moments.second[lane] / total;
        out[2][lane] = 0.0 - group->moments.third[lane] / total;
        out[3][lane] = log_total - gap;
        out[4][lane] = log_total - mean;
        out[5][lane] = brier / (total * total);
        out[6][lane] = 1.0 / total;
    }
    write_lanes(out, rows, n, columns);
}

#define SCORE_ROWS safecal_score_logits
#include "_class_rows.h"
