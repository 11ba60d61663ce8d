/* Rows of K numbers in eight lanes. Few classes: a lane is a row. Many classes: the lanes are classes of one row, and
   are added up at its end. The loops over a tile are the same. */

#ifndef SAFECAL_TILES_H
#define SAFECAL_TILES_H

#include "_compiled.h"
#include "_elementary.h"

#define FEW 128      /* up to so many classes, a lane is a row */
#define STRETCH 1024 /* so many numbers are added up by themselves, for the sake of the last digits */

typedef struct {
    double second[LANES], third[LANES]; /* sums of u (d - mean)^2 and ^3 */
} Moments;

INLINE const char *row_of(const void *z, int single, Py_ssize_t row, Py_ssize_t classes)
{
    return (const char *)z + row * classes * (Py_ssize_t)(single ? sizeof(float) : sizeof(double));
}

INLINE double largest_of(const void *z, int single, Py_ssize_t classes)
{
    double lanes[LANES];
    Py_ssize_t i = 0;
    EACH_LANE(lane)
        lanes[lane] = value_at(z, single, 0);
    for (; i + LANES <= classes; i += LANES)
        EACH_LANE(lane) {
            double value = value_at(z, single, i + lane);
            lanes[lane] = value > lanes[lane] ? value : lanes[lane];
        }
    for (; i < classes; i++)
        lanes[0] = value_at(z, single, i) > lanes[0] ? value_at(z, single, i) : lanes[0];
    for (int lane = 1; lane < LANES; lane++)
        lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
    return lanes[0];
}

/* The first place of a value. */
INLINE Py_ssize_t place_of(const void *z, int single, Py_ssize_t classes, double value)
{
    Py_ssize_t i = 0;
    for (; i + 64 <= classes; i += 64) {
        int found = 0;
        for (int k = 0; k < 64; k++)
            found |= value_at(z, single, i + k) == value;
        if (found)
            break;
    }
    while (i < classes - 1 && value_at(z, single, i) != value)
        i++;
    return i;
}

INLINE Py_ssize_t tile_size(Py_ssize_t classes)
{
    return classes <= FEW ? classes * LANES : (classes + LANES - 1) / LANES * LANES;
}

/* Fill a tile with at most eight rows, a lane each, and find the largest of each row and its first place. */
INLINE void load_lanes(const void *z, int single, Py_ssize_t rows, Py_ssize_t classes, double *restrict tile,
                       double *restrict largest, Py_ssize_t *restrict top)
{
    double place[LANES] = {0.0};
    for (int lane = 0; lane < LANES; lane++)
        for (Py_ssize_t k = 0, row = (lane < rows ? lane : 0) * classes; k < classes; k++)
            tile[k * LANES + lane] = value_at(z, single, row + k);
    memcpy(largest, tile, LANES * sizeof(double));
    for (Py_ssize_t k = 1; k < classes; k++)
        EACH_LANE(lane) {
            double value = tile[k * LANES + lane];
            place[lane] = value > largest[lane] ? (double)k : place[lane];
            largest[lane] = value > largest[lane] ? value : largest[lane];
        }
    for (int lane = 0; lane < LANES; lane++)
        top[lane] = (Py_ssize_t)place[lane];
}

/* Sum u (d - mean)^2 and ^3. */
INLINE void centre(const double *restrict d, const double *restrict u, Py_ssize_t size, const double *restrict mean,
                   Moments *restrict sums)
{
    memset(sums, 0, sizeof *sums);
    for (Py_ssize_t from = 0; from < size; from += STRETCH) {
        Py_ssize_t to = size - from < STRETCH ? size : from + STRETCH;
        Moments part;
        memset(&part, 0, sizeof part);
        for (Py_ssize_t i = from; i < to; i += LANES)
            EACH_LANE(lane) {
                double x = d[i + lane] - mean[lane], second = u[i + lane] * x * x;
                part.second[lane] += second;
                part.third[lane] += second * x;
            }
        EACH_LANE(lane) {
            sums->second[lane] += part.second[lane];
            sums->third[lane] += part.third[lane];
        }
    }
}

/* Write columns of at most eight rows. */
INLINE void write_lanes(double out[][LANES], int count, Py_ssize_t rows, Py_ssize_t n, double *restrict columns)
{
    for (int j = 0; j < count; j++)
        if (rows == LANES)
            memcpy(columns + j * n, out[j], sizeof out[j]);
        else
            memcpy(columns + j * n, out[j], (size_t)rows * sizeof(double));
}

#endif
