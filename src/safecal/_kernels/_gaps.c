/* Predictions over K classes at one inverse temperature: the largest logit of each row, and mean, variance and third
   cumulant of how far the others lie below it, under p**beta. */

#include "_tiles.h"

#define FARTHEST 1e18 /* a gap whose third power is a float; such a class has no weight */

typedef struct {
    double total[LANES], first[LANES], second[LANES], third[LANES];
} Powers;

INLINE double gap_of(double largest, double value)
{
    double gap = largest - value;
    return gap < FARTHEST ? gap : FARTHEST;
}

/* Add the powers of eight gaps. */
INLINE void add_powers(const double *restrict gap, double beta, Powers *restrict sums)
{
    EACH_LANE(lane) {
        double g = gap[lane], x = -beta * g, w = exp_of(x > LEAST ? x : LEAST);
        sums->total[lane] += w;
        w *= g;
        sums->first[lane] += w;
        w *= g;
        sums->second[lane] += w;
        sums->third[lane] += w * g;
    }
}

/* Few classes: at most eight rows at once, a lane each. */
INLINE void powers_of_lanes(const void *z, int single, Py_ssize_t rows, Py_ssize_t classes, double beta,
                            double *restrict tile, double *restrict largest, Powers *restrict sums)
{
    Powers all;
    double most[LANES];
    for (int lane = 0; lane < LANES; lane++)
        for (Py_ssize_t k = 0, row = (lane < rows ? lane : 0) * classes; k < classes; k++)
            tile[k * LANES + lane] = value_at(z, single, row + k);
    memcpy(most, tile, sizeof most);
    for (Py_ssize_t i = LANES; i < classes * LANES; i += LANES)
        EACH_LANE(lane)
            most[lane] = tile[i + lane] > most[lane] ? tile[i + lane] : most[lane];
    memset(&all, 0, sizeof all);
    for (Py_ssize_t i = 0; i < classes * LANES; i += LANES) {
        double gap[LANES];
        EACH_LANE(lane)
            gap[lane] = gap_of(most[lane], tile[i + lane]);
        add_powers(gap, beta, &all);
    }
    memcpy(largest, most, sizeof most);
    *sums = all;
}

/* Many classes: one row, into one lane. */
INLINE void powers_of_row(const void *z, int single, Py_ssize_t classes, double beta, double *restrict largest,
                          Powers *restrict sums, int row)
{
    Powers all;
    double gap[LANES], most = largest_of(z, single, classes);
    memset(&all, 0, sizeof all);
    for (Py_ssize_t from = 0; from < classes; from += STRETCH) {
        Py_ssize_t to = classes - from < STRETCH ? classes : from + STRETCH, i = from;
        Powers part;
        memset(&part, 0, sizeof part);
        for (; i + LANES <= to; i += LANES) {
            EACH_LANE(lane)
                gap[lane] = gap_of(most, value_at(z, single, i + lane));
            add_powers(gap, beta, &part);
        }
        if (i < to) {
            for (int lane = 0; lane < LANES; lane++)
                gap[lane] = i + lane < to ? gap_of(most, value_at(z, single, i + lane)) : FARTHEST;
            add_powers(gap, beta, &part);
        }
        EACH_LANE(lane) {
            all.total[lane] += part.total[lane], all.first[lane] += part.first[lane];
            all.second[lane] += part.second[lane], all.third[lane] += part.third[lane];
        }
    }
    largest[row] = most;
    sums->total[row] = added(all.total), sums->first[row] = added(all.first);
    sums->second[row] = added(all.second), sums->third[row] = added(all.third);
}

INLINE void moments(const GapRows *rows, int single, double *restrict tile)
{
    Powers sums;
    double out[GAP_COLUMNS][LANES];
    memset(&sums, 0, sizeof sums);
    memset(out, 0, sizeof out);
    for (Py_ssize_t at = 0; at < rows->n; at += LANES) {
        Py_ssize_t some = rows->n - at < LANES ? rows->n - at : LANES;
        if (rows->classes <= FEW)
            powers_of_lanes(row_of(rows->values, single, at, rows->classes), single, some, rows->classes, rows->beta,
                            tile, out[3], &sums);
        else
            for (int lane = 0; lane < some; lane++)
                powers_of_row(row_of(rows->values, single, at + lane, rows->classes), single, rows->classes, rows->beta,
                              out[3], &sums, lane);
        EACH_LANE(lane) {
            double total = sums.total[lane] > 0.0 ? sums.total[lane] : 1.0; /* the lanes of no row */
            double mean = sums.first[lane] / total, second = sums.second[lane] / total, variance = second - mean * mean;
            out[0][lane] = mean;
            out[1][lane] = variance > 0.0 ? variance : 0.0;
            out[2][lane] = sums.third[lane] / total - 3.0 * mean * second + 2.0 * (mean * mean * mean);
        }
        write_lanes(out, GAP_COLUMNS, some, rows->n, rows->columns + at);
    }
}

FAST static void moments_of_floats(const GapRows *rows, double *tile)
{
    moments(rows, 1, tile);
}

FAST static void moments_of_doubles(const GapRows *rows, double *tile)
{
    moments(rows, 0, tile);
}

void safecal_gap_moments(const GapRows *rows)
{
    double tile[FEW * LANES];
    if (rows->single)
        moments_of_floats(rows, tile);
    else
        moments_of_doubles(rows, tile);
}
