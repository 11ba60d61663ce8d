/* Two-outcome rows at the nodes of `spectrum.py`, where R(beta) = log(1 + exp(-beta L)): with q the tempered probability of
   the less likely outcome its derivatives are -L q, L^2 q (1 - q) and -L^3 q (1 - q) (1 - 2q). R is -log(1 - q), whose
   sum is taken of products. And rows of a logistic regression on their log-odds. */

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

/* Add eight rows of a logistic regression. */
INLINE void add_logistic(double shift, double slope, const double *restrict z, const double *restrict away,
                         const double *restrict mass, double lanes[LOGISTIC][LANES])
{
    EACH_LANE(lane) {
        double v = z[lane], x = away[lane] * (shift + slope * v), far = -magnitude(x);
        double t = exp_of(far > LEAST ? far : LEAST), share = 1.0 / (1.0 + t), least = t * share;
        double score = away[lane] * mass[lane] * (x > 0.0 ? share : least), spread = mass[lane] * least * share;
        lanes[0][lane] += mass[lane] * ((x > 0.0 || x != x ? x : 0.0) + log_of_one_plus(t));
        lanes[1][lane] += score;
        lanes[2][lane] += score * v;
        lanes[3][lane] += spread;
        lanes[4][lane] += spread * v;
        lanes[5][lane] += spread * v * v;
    }
}

FAST void safecal_add_logistic(double shift, double slope, const double *restrict z, const double *restrict away,
                               const double *restrict mass, Py_ssize_t n, double *restrict total)
{
    double lanes[LOGISTIC][LANES], last[3][LANES] = {{0.0}};
    Py_ssize_t whole = n - n % LANES;
    size_t rest = (size_t)(n - whole) * sizeof(double);
    memset(lanes, 0, sizeof lanes);
    for (Py_ssize_t i = 0; i < whole; i += LANES)
        add_logistic(shift, slope, z + i, away + i, mass + i, lanes);
    if (rest) { /* zeros fill the last lanes, and have no mass */
        memcpy(last[0], z + whole, rest), memcpy(last[1], away + whole, rest), memcpy(last[2], mass + whole, rest);
        add_logistic(shift, slope, last[0], last[1], last[2], lanes);
    }
    for (int j = 0; j < LOGISTIC; j++)
        total[j] = added(lanes[j]);
}
