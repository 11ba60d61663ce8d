/* Points that stand for two-outcome rows: those of the moments of cells, as in `cells.py`, and sums over points. */

#include "_compiled.h"
#include "_elementary.h"

#include <math.h>

#define SAME 1e-7 /* of the log-odds: a spread that is rounding */
#define SOME 256  /* points at a time */

Py_ssize_t safecal_two_points(const double *moments, Py_ssize_t sets, Py_ssize_t each, const double *centres,
                              double *restrict L, double *restrict n, int64_t *restrict set)
{
    Py_ssize_t used = 0, one = 0, two;
    for (Py_ssize_t k = 0; k < sets; k++)
        used += moments[MOMENTS * k] != 0.0;
    two = used;
    for (Py_ssize_t k = 0; k < sets; k++) {
        const double *sums = moments + MOMENTS * k;
        double count = sums[0], centre = centres[k / each], mean, second, variance, spread, middle;
        if (count == 0.0)
            continue;
        mean = sums[1] / count, second = sums[2] / count, middle = centre + mean;
        variance = second - mean * mean;
        variance = variance > 0.0 ? variance : 0.0;
        spread = sqrt(variance);
        set[one] = k;
        if (spread <= SAME * (middle > centre ? middle : centre) || count < 2.0) {
            L[one] = middle > 0.0 ? middle : 0.0;
            n[one++] = count;
        } else {
            double third = sums[3] / count - 3.0 * mean * second + 2.0 * (mean * mean * mean);
            double half = 0.5 * third / (variance * spread), reach = sqrt(1.0 + half * half), above = half + reach;
            double share = 0.5 * above / reach, low = middle + (half - reach) * spread, high = middle + above * spread;
            L[one] = low > 0.0 ? low : 0.0;
            n[one++] = count * share;
            set[two] = k;
            L[two] = high > 0.0 ? high : 0.0;
            n[two++] = count * (1.0 - share);
        }
    }
    return two;
}

/* What eight points add to the sums of their place: see `order_of_cells`. Whether they are wrong, and positive, is 0 or 1. */
INLINE void columns_of(const double *restrict L, const double *restrict n, const double *restrict wrong,
                       const double *restrict positive, double out[POINT_SUMS][SOME], Py_ssize_t at)
{
    EACH_LANE(lane) {
        double x = L[lane], far = -x, small = exp_of(far > LEAST ? far : LEAST), likely = 1.0 / (1.0 + small);
        double q = small * likely, mean = q > 0.0 ? x * q : 0.0, spread = mean > 0.0 ? mean * (x * likely) : 0.0;
        double e = wrong[lane] * x - mean, e2 = n[lane] * (e * e), confidence = n[lane] * likely;
        out[0][at + lane] = n[lane];
        out[1][at + lane] = n[lane] * e;
        out[2][at + lane] = e2;
        out[3][at + lane] = e2 * e;
        out[4][at + lane] = n[lane] * spread;
        out[5][at + lane] = n[lane] * (spread > 0.0 ? spread * (x * (likely - q)) : 0.0);
        out[6][at + lane] = n[lane] * (log_of_one_plus(small) + mean);
        out[7][at + lane] = positive[lane] * confidence + (1.0 - positive[lane]) * (n[lane] * q);
        out[8][at + lane] = n[lane] * magnitude(positive[lane] - wrong[lane]);
        out[9][at + lane] = confidence;
        out[10][at + lane] = n[lane] * (1.0 - wrong[lane]);
    }
}

/* Columns of at most SOME points; up to the next multiple of LANES, they are those of points that stand for no row. */
FAST static void fill_columns(const PointRows *points, Py_ssize_t from, Py_ssize_t n, double out[POINT_SUMS][SOME])
{
    double L[SOME + LANES], counts[SOME + LANES], wrong[SOME + LANES], positive[SOME + LANES];
    for (Py_ssize_t i = 0; i < n; i++) {
        L[i] = points->L[from + i], counts[i] = points->n[from + i];
        wrong[i] = points->wrong[from + i], positive[i] = points->positive[from + i];
    }
    for (Py_ssize_t i = n; i % LANES; i++)
        L[i] = counts[i] = wrong[i] = positive[i] = 0.0;
    for (Py_ssize_t i = 0; i < n; i += LANES)
        columns_of(L + i, counts + i, wrong + i, positive + i, out, i);
}

INLINE Py_ssize_t place_of(const PointRows *points, Py_ssize_t i)
{
    return points->positive[i] ? CELLS + points->cell[i] : CELLS - 1 - points->cell[i];
}

Py_ssize_t safecal_sum_points(const PointRows *points, int64_t *used, double *sums)
{
    double columns[POINT_SUMS][SOME];
    int32_t number[2 * CELLS] = {0};
    Py_ssize_t places = 0;
    for (Py_ssize_t i = 0; i < points->count; i++)
        number[place_of(points, i)] = 1;
    for (int place = 0; place < 2 * CELLS; place++)
        if (number[place]) {
            number[place] = (int32_t)places;
            used[places++] = place;
        }
    memset(sums, 0, (size_t)places * POINT_SUMS * sizeof *sums);
    for (Py_ssize_t from = 0; from < points->count; from += SOME) {
        Py_ssize_t n = points->count - from < SOME ? points->count - from : SOME;
        fill_columns(points, from, n, columns);
        for (Py_ssize_t i = 0; i < n; i++) {
            double *place = sums + POINT_SUMS * number[place_of(points, from + i)];
            for (int j = 0; j < POINT_SUMS; j++)
                place[j] += columns[j][i];
        }
    }
    return places;
}

/* Sums of eight points at one inverse temperature. */
INLINE void add_tempered(double beta, const double *restrict L, const double *restrict n, double lanes[TEMPERED][LANES])
{
    EACH_LANE(lane) {
        double x = beta * L[lane], far = -magnitude(x), t = exp_of(far > LEAST ? far : LEAST), share = 1.0 / (1.0 + t);
        double q = beta < 0.0 ? share : t * share, rest = beta < 0.0 ? t * share : share, mean = L[lane] * q;
        double spread = mean * (L[lane] * rest); /* in this order, because L * L may overflow where q is 0 */
        lanes[0][lane] += n[lane] * (log_of_one_plus(t) - (x < 0.0 ? x : 0.0));
        lanes[1][lane] += n[lane] * mean;
        lanes[2][lane] += n[lane] * spread;
        lanes[3][lane] += n[lane] * (spread * (L[lane] * (rest - q)));
    }
}

FAST void safecal_add_tempered(double beta, const double *restrict L, const double *restrict n, Py_ssize_t count,
                               double *restrict total)
{
    double lanes[TEMPERED][LANES], last[2][LANES] = {{0.0}};
    Py_ssize_t whole = count - count % LANES;
    size_t rest = (size_t)(count - whole) * sizeof(double);
    memset(lanes, 0, sizeof lanes);
    for (Py_ssize_t i = 0; i < whole; i += LANES)
        add_tempered(beta, L + i, n + i, lanes);
    if (rest) {
        memcpy(last[0], L + whole, rest), memcpy(last[1], n + whole, rest);
        add_tempered(beta, last[0], last[1], lanes);
    }
    for (int j = 0; j < TEMPERED; j++)
        total[j] = added(lanes[j]);
}

/* log(1 + exp(-x)), without loss for large x and small ones. */
INLINE double softplus_of_minus(double x)
{
    double far = -magnitude(x);
    return log_of_one_plus(exp_of(far > LEAST ? far : LEAST)) - (x < 0.0 ? x : 0.0);
}

/* By how much log(1 + exp(-beta L)) of eight points is larger than at another beta. Where the two are close that is
   log(1 + share (exp(step) - 1)), with all digits. */
INLINE void add_change(double beta, double other, const double *restrict L, const double *restrict n,
                       double lanes[LANES])
{
    double change[LANES], largest = 0.0;
    EACH_LANE(lane)
        largest = L[lane] > largest ? L[lane] : largest;
    EACH_LANE(lane) {
        double y = other * L[lane], step = (other - beta) * L[lane], far = -magnitude(y), u, lost, scale;
        double t = exp_of(far > LEAST ? far : LEAST), share = (y > 0.0 ? t : 1.0) / (1.0 + t);
        Power power = power_of(magnitude(step) < 1.0 ? step : 0.0);
        scale = from_bits((to_bits(power.shifted) + 1023) << 52);
        share *= scale * power.q + (scale - 1.0);
        u = 1.0 + share, lost = share - (u - 1.0);
        change[lane] = log_near(u, lost * (2.0 - u > 0.0 ? 2.0 - u : 0.0));
    }
    if (!(magnitude(other - beta) * largest < 1.0))
        EACH_LANE(lane) {
            double apart = softplus_of_minus(beta * L[lane]) - softplus_of_minus(other * L[lane]);
            change[lane] = magnitude((other - beta) * L[lane]) < 1.0 ? change[lane] : apart;
        }
    EACH_LANE(lane)
        lanes[lane] += n[lane] * change[lane];
}

FAST double safecal_change(double beta, double other, const double *restrict L, const double *restrict n,
                           Py_ssize_t count)
{
    double lanes[LANES] = {0.0}, last[2][LANES] = {{0.0}};
    Py_ssize_t whole = count - count % LANES;
    size_t rest = (size_t)(count - whole) * sizeof(double);
    for (Py_ssize_t i = 0; i < whole; i += LANES)
        add_change(beta, other, L + i, n + i, lanes);
    if (rest) {
        memcpy(last[0], L + whole, rest), memcpy(last[1], n + whole, rest);
        add_change(beta, other, last[0], last[1], lanes);
    }
    return added(lanes);
}
