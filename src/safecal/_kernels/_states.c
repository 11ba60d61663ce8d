/* Gaussian states of few dimensions: Cholesky factors of eight covariance matrices at once, a lane a row. */

#include "_compiled.h"
#include "_elementary.h"

#include <float.h>
#include <math.h>

/* Eight matrices side by side, and their factors. */
typedef struct {
    double matrix[MOST_DIMENSIONS][MOST_DIMENSIONS][LANES], factor[MOST_DIMENSIONS][MOST_DIMENSIONS][LANES];
    double pivot[MOST_DIMENSIONS][LANES]; /* what is left of a variance: the square of the factor's diagonal */
} Tile;

/* Put the matrices of up to eight rows beside each other, the lower triangles or the `whole`; the lanes without a row
   hold ones on the diagonal. */
INLINE void load(Tile *tile, const double *matrices, Py_ssize_t d, Py_ssize_t rows, int whole)
{
    for (Py_ssize_t lane = 0; lane < LANES; lane++) {
        const double *matrix = matrices + (lane < rows ? lane : 0) * d * d;
        for (Py_ssize_t i = 0; i < d; i++)
            for (Py_ssize_t j = 0; j < (whole ? d : i + 1); j++)
                tile->matrix[i][j][lane] = lane < rows ? matrix[i * d + j] : i == j ? 1.0 : 0.0;
    }
}

/* Factors of the lower triangles. A pivot that is not above 0 gives no number, or none of use. */
INLINE void factorise(Tile *tile, Py_ssize_t d)
{
    for (Py_ssize_t j = 0; j < d; j++)
        for (Py_ssize_t i = j; i < d; i++) {
            double rest[LANES];
            EACH_LANE(lane)
                rest[lane] = tile->matrix[i][j][lane];
            for (Py_ssize_t k = 0; k < j; k++)
                EACH_LANE(lane)
                    rest[lane] -= tile->factor[i][k][lane] * tile->factor[j][k][lane];
            if (i == j)
                EACH_LANE(lane) {
                    tile->pivot[j][lane] = rest[lane];
                    tile->factor[j][j][lane] = sqrt(rest[lane]);
                }
            else
                EACH_LANE(lane)
                    tile->factor[i][j][lane] = rest[lane] / tile->factor[j][j][lane];
        }
}

/* How many lanes break a rule; what is not a number breaks every one. */
INLINE int64_t unsound(const Tile *tile, Py_ssize_t d, double asymmetry, double share)
{
    double scale[MOST_DIMENSIONS][LANES];
    int64_t bad[LANES] = {0}, all = 0;
    for (Py_ssize_t i = 0; i < d; i++) {
        EACH_LANE(lane) {
            scale[i][lane] = sqrt(magnitude(tile->matrix[i][i][lane]));
            bad[lane] |= !(tile->pivot[i][lane] > share * tile->matrix[i][i][lane]);
        }
        for (Py_ssize_t j = 0; j < i; j++)
            EACH_LANE(lane) {
                double gap = magnitude(tile->matrix[i][j][lane] - tile->matrix[j][i][lane]);
                bad[lane] |= !(gap <= asymmetry * scale[i][lane] * scale[j][lane]);
            }
    }
    for (int lane = 0; lane < LANES; lane++)
        all += bad[lane];
    return all;
}

FAST int safecal_sound(const double *matrices, Py_ssize_t n, Py_ssize_t d, double asymmetry, double share)
{
    Tile tile;
    int64_t bad = 0;
    for (Py_ssize_t at = 0; at < n && !bad; at += LANES) {
        load(&tile, matrices + at * d * d, d, n - at, 1);
        factorise(&tile, d);
        bad = unsound(&tile, d, asymmetry, share);
    }
    return !bad;
}

/* Forward substitution: NEES and log-determinant of a tile. */
INLINE void whiten(const Tile *tile, const double *residual, Py_ssize_t d, Py_ssize_t rows, double *nees,
                   double *logdet)
{
    double white[MOST_DIMENSIONS][LANES];
    EACH_LANE(lane)
        nees[lane] = logdet[lane] = 0.0;
    for (Py_ssize_t lane = 0; lane < LANES; lane++)
        for (Py_ssize_t i = 0; i < d; i++)
            white[i][lane] = lane < rows ? residual[lane * d + i] : 0.0;
    for (Py_ssize_t i = 0; i < d; i++) {
        for (Py_ssize_t j = 0; j < i; j++)
            EACH_LANE(lane)
                white[i][lane] -= tile->factor[i][j][lane] * white[j][lane];
        EACH_LANE(lane) {
            white[i][lane] /= tile->factor[i][i][lane];
            nees[lane] += white[i][lane] * white[i][lane];
            logdet[lane] += log_near(tile->factor[i][i][lane], 0.0);
        }
    }
    EACH_LANE(lane)
        logdet[lane] *= 2.0;
}

FAST int safecal_score_states(const double *residual, const double *matrices, Py_ssize_t n, Py_ssize_t d, double *nees,
                              double *logdet)
{
    Tile tile;
    double found[2][LANES];
    for (Py_ssize_t at = 0; at < n; at += LANES) {
        Py_ssize_t rows = n - at < LANES ? n - at : LANES;
        int64_t bad = 0;
        load(&tile, matrices + at * d * d, d, rows, 0);
        factorise(&tile, d);
        for (Py_ssize_t i = 0; i < d; i++)
            for (int lane = 0; lane < LANES; lane++)
                bad |= !(tile.pivot[i][lane] > 0.0 && tile.pivot[i][lane] <= DBL_MAX);
        if (bad)
            return 0;
        whiten(&tile, residual + at * d, d, rows, found[0], found[1]);
        memcpy(nees + at, found[0], (size_t)rows * sizeof *nees);
        memcpy(logdet + at, found[1], (size_t)rows * sizeof *logdet);
    }
    return 1;
}
