/* The sum of a column over the rows of each key. Quarters of the rows are summed side by side, so that rows of one key
   do not wait for each other. */

#include "_compiled.h"

int safecal_sum_by_key(const double *column, const int64_t *index, Py_ssize_t n, Py_ssize_t keys, double *sums)
{
    double part[4][MOST_KEYS];
    Py_ssize_t quarter = n / 4;
    for (int s = 0; s < 4; s++)
        memset(part[s], 0, (size_t)keys * sizeof(double));
    for (Py_ssize_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= keys)
            return 0;
    for (Py_ssize_t i = 0; i < quarter; i++)
        for (int s = 0; s < 4; s++)
            part[s][index[i + s * quarter]] += column[i + s * quarter];
    for (Py_ssize_t i = 4 * quarter; i < n; i++)
        part[3][index[i]] += column[i];
    for (Py_ssize_t k = 0; k < keys; k++)
        sums[k] = (part[0][k] + part[1][k]) + (part[2][k] + part[3][k]);
    return 1;
}
