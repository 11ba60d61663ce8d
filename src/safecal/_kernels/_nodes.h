/* R(beta) = log(1 + sum of exp(beta d) over the other classes) and its derivatives, as in `spectrum.py`: at each node the
   sum of the weights w and of w d, then central moments. The weights of a node are the squares of those before.

   The tiles hold `d = log p - log p of the top class` and `q = exp(d / 4)`. */

#ifndef SAFECAL_NODES_H
#define SAFECAL_NODES_H

#include "_tiles.h"

#define NODES 5
#define ONE 2                        /* the node of beta = 1 */
#define LEAST_AT_NODES (4.0 * LEAST) /* from here on, the weight of the first node is 0, and so are the others */

typedef struct {
    double weight[NODES][LANES], weighted[NODES][LANES], second[NODES][LANES], third[NODES][LANES];
} Nodes; /* sums of w and w d over all classes but the top one, of w (d - mean)^2 and ^3 over all */

typedef double NodeSums[NODES][LANES];

#define EACH_SUM(k, lane)                                                                                              \
    for (int k = 0; k < NODES; k++)                                                                                    \
        EACH_LANE(lane)

/* Fill q, and sum w and w d of each node; meanwhile the next tile comes from memory. */
INLINE void weigh_nodes(const double *restrict d, double *restrict q, Py_ssize_t size, const char *next, int item,
                        NodeSums weight, NodeSums weighted)
{
    NodeSums a, b;
    EACH_SUM(k, lane)
        a[k][lane] = b[k][lane] = 0.0;
    for (Py_ssize_t i = 0; i < size; i += LANES) {
        PREFETCH(next + i * item);
        EACH_LANE(lane) {
            double x = d[i + lane], w = exp_of(0.25 * x);
            q[i + lane] = w;
            a[0][lane] += w, b[0][lane] += w * x, w *= w;
            a[1][lane] += w, b[1][lane] += w * x, w *= w;
            a[2][lane] += w, b[2][lane] += w * x, w *= w;
            a[3][lane] += w, b[3][lane] += w * x, w *= w;
            a[4][lane] += w, b[4][lane] += w * x;
        }
    }
    EACH_SUM(k, lane)
        weight[k][lane] = a[k][lane], weighted[k][lane] = b[k][lane];
}

#define CENTRE(k) x = d[i + lane] - mean[k][lane], s = w * x * x, a[k][lane] += s, b[k][lane] += s * x, w *= w

/* Sum w (d - mean)^2 and ^3 of each node. */
INLINE void centre_nodes(const double *restrict d, const double *restrict q, Py_ssize_t size, const NodeSums given,
                         NodeSums second, NodeSums third)
{
    NodeSums a, b, mean;
    EACH_SUM(k, lane)
        a[k][lane] = b[k][lane] = 0.0, mean[k][lane] = given[k][lane];
    for (Py_ssize_t i = 0; i < size; i += LANES)
        EACH_LANE(lane) {
            double w = q[i + lane], x, s;
            CENTRE(0);
            CENTRE(1);
            CENTRE(2);
            CENTRE(3);
            CENTRE(4);
        }
    EACH_SUM(k, lane)
        second[k][lane] = a[k][lane], third[k][lane] = b[k][lane];
}

/* Add up the lanes of a stretch of one row. */
INLINE void add_lanes(const NodeSums part, NodeSums sums, int lane)
{
    for (int k = 0; k < NODES; k++)
        sums[k][lane] += added(part[k]);
}

/* Many classes: one row, into one lane. */
INLINE void nodes_of_row(double *restrict d, double *restrict q, Py_ssize_t size, Py_ssize_t top, const char *next,
                         int item, Nodes *restrict nodes, int lane)
{
    NodeSums a, b, mean;
    for (int k = 0; k < NODES; k++)
        nodes->weight[k][lane] = nodes->weighted[k][lane] = nodes->second[k][lane] = nodes->third[k][lane] = 0.0;
    d[top] = LEAST_AT_NODES;
    for (Py_ssize_t at = 0; at < size; at += STRETCH) {
        weigh_nodes(d + at, q + at, size - at < STRETCH ? size - at : STRETCH, next + at * item, item, a, b);
        add_lanes(a, nodes->weight, lane);
        add_lanes(b, nodes->weighted, lane);
    }
    d[top] = 0.0, q[top] = 1.0;
    for (int k = 0; k < NODES; k++)
        EACH_LANE(j)
            mean[k][j] = nodes->weighted[k][lane] / (1.0 + nodes->weight[k][lane]);
    for (Py_ssize_t at = 0; at < size; at += STRETCH) {
        centre_nodes(d + at, q + at, size - at < STRETCH ? size - at : STRETCH, mean, a, b);
        add_lanes(a, nodes->second, lane);
        add_lanes(b, nodes->third, lane);
    }
}

/* Few classes, less than a stretch: eight rows at once. */
INLINE void nodes_of_lanes(double *restrict d, double *restrict q, Py_ssize_t size, const Py_ssize_t *top,
                           const char *next, int item, Nodes *restrict nodes)
{
    NodeSums mean;
    for (int lane = 0; lane < LANES; lane++)
        d[top[lane] * LANES + lane] = LEAST_AT_NODES;
    weigh_nodes(d, q, size, next, item, nodes->weight, nodes->weighted);
    for (int lane = 0; lane < LANES; lane++)
        d[top[lane] * LANES + lane] = 0.0, q[top[lane] * LANES + lane] = 1.0;
    EACH_SUM(k, lane)
        mean[k][lane] = nodes->weighted[k][lane] / (1.0 + nodes->weight[k][lane]);
    centre_nodes(d, q, size, mean, nodes->second, nodes->third);
}

/* From the sums of at most eight rows to R and its derivatives. */
INLINE void write_nodes(const Nodes *restrict nodes, Py_ssize_t rows, Py_ssize_t n, double *restrict columns)
{
    for (int k = 0; k < NODES; k++) {
        double out[4][LANES];
        EACH_LANE(lane) {
            double weight = nodes->weight[k][lane], total = 1.0 + weight;
            out[0][lane] = log_of_one_plus(weight);
            out[1][lane] = nodes->weighted[k][lane] / total;
            out[2][lane] = nodes->second[k][lane] / total;
            out[3][lane] = nodes->third[k][lane] / total;
        }
        write_lanes(out, 4, rows, n, columns + 4 * k * n);
    }
}

#endif
