/* Predictions over K classes from logits: the columns of `categorical.py`, eight rows at a time.

   The tiles hold `d = logit - largest logit` and `u = exp(d)`, or the fourth root of that where nodes are wanted. */

#include "_nodes.h"

#define SHARP 1e-20 /* below it, exp turns the rounding of a large gap into a relative error */

typedef struct {
    double rest[LANES], weighted[LANES], square[LANES]; /* sums of u, u d, u u over all classes but the top one */
} Weights;

typedef struct {
    Weights weights;
    Moments moments;
    Nodes nodes;
    double gap[LANES], weight[LANES], right[LANES]; /* d and u of the class that happened; 1 where it is the top one */
} Group;

INLINE double limited(double d, int nodes)
{
    double least = nodes ? LEAST_AT_NODES : LEAST;
    return d > least ? d : least; /* -inf, too: u is 0 there, and so is every product with it */
}

INLINE double fourth_power(double root)
{
    return root * root * (root * root);
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

/* One row, its elements `step` apart: put back into u what the rounding of d lost, and add up again. */
static void sharpen(const void *z, int single, Py_ssize_t classes, Py_ssize_t top, const double *d, double *u,
                    Py_ssize_t step, Group *group, int lane)
{
    double b = value_at(z, single, top), rest = 0.0, weighted = 0.0, square = 0.0;
    for (Py_ssize_t k = 0; k < classes; k++) {
        double a = value_at(z, single, k), x = d[k * step], back = x - a, w;
        if (k == top || !(x > LEAST))
            continue;
        w = u[k * step] * (1.0 + ((a - (x - back)) - (b + back)));
        u[k * step] = w;
        rest += w;
        weighted += w * x;
        square += w * w;
    }
    group->weights.rest[lane] = rest;
    group->weights.weighted[lane] = weighted;
    group->weights.square[lane] = square;
}

/* The same where u was its own fourth root, and the moments are there already. */
static void sharpen_again(const void *z, int single, Py_ssize_t classes, Py_ssize_t top, const double *d, double *u,
                          Py_ssize_t step, Group *group, int lane)
{
    double mean, second, third;
    for (Py_ssize_t k = 0; k < classes; k++)
        u[k * step] = fourth_power(u[k * step]);
    sharpen(z, single, classes, top, d, u, step, group, lane);
    mean = group->weights.weighted[lane] / (1.0 + group->weights.rest[lane]);
    second = third = 0.0;
    for (Py_ssize_t k = 0; k < classes; k++) {
        double x = d[k * step] - mean, s = u[k * step] * x * x;
        second += s;
        third += s * x;
    }
    group->moments.second[lane] = second;
    group->moments.third[lane] = third;
}

/* What the columns need of the nodes. */
INLINE void take_node(Group *restrict group, Py_ssize_t lane)
{
    const Nodes *nodes = &group->nodes;
    group->weights.rest[lane] = nodes->weight[ONE][lane];
    group->weights.weighted[lane] = nodes->weighted[ONE][lane];
    group->weights.square[lane] = nodes->weight[ONE + 1][lane];
    group->moments.second[lane] = nodes->second[ONE][lane];
    group->moments.third[lane] = nodes->third[ONE][lane];
}

/* Many classes: one row, into one lane of its group. */
INLINE Py_ssize_t score_row(const void *z, int single, int nodes, Py_ssize_t classes, Py_ssize_t y, double *restrict d,
                            double *restrict u, Group *restrict group, int lane)
{
    double largest = largest_of(z, single, classes), mean[LANES];
    Py_ssize_t top = place_of(z, single, classes, largest), size = tile_size(classes);
    const char *next = row_of(z, single, 1, classes);
    int item = single ? 4 : 8;
    for (Py_ssize_t i = 0; i < classes; i++)
        d[i] = limited(value_at(z, single, i) - largest, nodes);
    for (Py_ssize_t i = classes; i < size; i++)
        d[i] = limited(LEAST_AT_NODES, nodes);
    if (nodes) {
        nodes_of_row(d, u, size, top, next, item, &group->nodes, lane);
        take_node(group, lane);
        group->weight[lane] = fourth_power(u[y]);
        if (group->weights.rest[lane] < SHARP) {
            sharpen_again(z, single, classes, top, d, u, 1, group, lane);
            group->weight[lane] = u[y];
        }
    } else {
        Weights weights;
        Moments moments;
        d[top] = LEAST;
        weigh(d, u, size, &weights, next, item);
        group->weights.rest[lane] = added(weights.rest);
        group->weights.weighted[lane] = added(weights.weighted);
        group->weights.square[lane] = added(weights.square);
        if (group->weights.rest[lane] < SHARP)
            sharpen(z, single, classes, top, d, u, 1, group, lane);
        d[top] = 0.0, u[top] = 1.0;
        EACH_LANE(k)
            mean[k] = group->weights.weighted[lane] / (1.0 + group->weights.rest[lane]);
        centre(d, u, size, mean, &moments);
        group->moments.second[lane] = added(moments.second);
        group->moments.third[lane] = added(moments.third);
        group->weight[lane] = u[y];
    }
    group->gap[lane] = value_at(z, single, y) - largest;
    group->right[lane] = y == top;
    return top;
}

/* Few classes: `rows` rows at once, at most eight. */
INLINE void score_lanes(const void *z, int single, int nodes, Py_ssize_t rows, Py_ssize_t classes, const int64_t *y,
                        double *restrict d, double *restrict u, Group *restrict group, int64_t *restrict top)
{
    double largest[LANES], mean[LANES];
    Py_ssize_t size = tile_size(classes), at[LANES];
    const char *next = row_of(z, single, LANES, classes);
    int item = single ? 4 : 8;
    load_lanes(z, single, rows, classes, d, largest, at);
    for (Py_ssize_t i = 0; i < size; i += LANES)
        EACH_LANE(lane)
            d[i + lane] = limited(d[i + lane] - largest[lane], nodes);
    if (nodes) {
        nodes_of_lanes(d, u, size, at, next, item, &group->nodes);
        EACH_LANE(lane)
            take_node(group, lane);
        for (int lane = 0; lane < rows; lane++) {
            int sharp = group->weights.rest[lane] < SHARP;
            double *weight = u + y[lane] * LANES + lane;
            if (sharp)
                sharpen_again(row_of(z, single, lane, classes), single, classes, at[lane], d + lane, u + lane, LANES,
                              group, lane);
            group->weight[lane] = sharp ? *weight : fourth_power(*weight);
        }
    } else {
        for (int lane = 0; lane < LANES; lane++)
            d[at[lane] * LANES + lane] = LEAST;
        weigh(d, u, size, &group->weights, next, item);
        for (int lane = 0; lane < rows; lane++)
            if (group->weights.rest[lane] < SHARP)
                sharpen(row_of(z, single, lane, classes), single, classes, at[lane], d + lane, u + lane, LANES, group,
                        lane);
        for (int lane = 0; lane < LANES; lane++)
            d[at[lane] * LANES + lane] = 0.0, u[at[lane] * LANES + lane] = 1.0;
        EACH_LANE(lane)
            mean[lane] = group->weights.weighted[lane] / (1.0 + group->weights.rest[lane]);
        centre(d, u, size, mean, &group->moments);
        for (int lane = 0; lane < rows; lane++)
            group->weight[lane] = u[y[lane] * LANES + lane];
    }
    for (int lane = 0; lane < rows; lane++) {
        group->gap[lane] = value_at(z, single, lane * classes + (Py_ssize_t)y[lane]) - largest[lane];
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
    write_lanes(out, SCORES, rows, n, columns);
}

#define SCORE_ROWS safecal_score_logits
#include "_class_rows.h"
