/* Two-outcome rows at the nodes of `spectrum.py`, where R(beta) = log(1 + exp(-beta L)): with q the tempered probability of
   the less likely outcome its derivatives are -L q, L^2 q (1 - q) and -L^3 q (1 - q) (1 - 2q). R is -log(1 - q), whose
   sum is taken of products. */

#include "_nodes.h"

#define EACH_NODE(k) for (int k = 0; k < NODES; k++)

FAST void safecal_add_nodes(const double *restrict marked, const double *restrict L, Py_ssize_t n,
                            double *restrict total)
{
    double first[NODES][LANES], second[NODES][LANES], third[NODES][LANES], some[NODES][LANES], none[NODES][LANES];
    EACH_NODE(k)
        EACH_LANE(lane)
            first[k][lane] = second[k][lane] = third[k][lane] = some[k][lane] = 0.0, none[k][lane] = 1.0;
    for (Py_ssize_t i = 0; i < n; i += LANES) {
        double t[LANES];
        EACH_LANE(lane) {
            double x = -0.25 * L[i + lane], w = exp_of(x > LEAST ? x : LEAST);
            /* Certain rows, and zeros that fill the last lanes, have no other outcome. */
            t[lane] = unmarked(marked[i + lane]) + L[i + lane] > 0.0 ? w : 0.0;
        }
        EACH_NODE(k)
            EACH_LANE(lane) {
                double x = L[i + lane], M = 1.0 / (1.0 + t[lane]), q = t[lane] * M, mean = x * q, s = mean * (x * M);
                first[k][lane] += mean;
                second[k][lane] += s;
                third[k][lane] += s * (x * (M - q));
                some[k][lane] += q * (1.0 - some[k][lane]);
                none[k][lane] *= M;
                t[lane] *= t[lane];
            }
    }
    EACH_NODE(k)
        EACH_LANE(lane) {
            double *sums = total + 4 * k * LANES + lane;
            sums[0] += minus_log_of(some[k][lane], none[k][lane]);
            sums[LANES] -= first[k][lane];
            sums[2 * LANES] += second[k][lane];
            sums[3 * LANES] -= third[k][lane];
        }
}
