/* Two-outcome predictions: all sums by key in one pass. Rows wait with others of their key for a run to be full. */

#include "_compiled.h"
#include "_elementary.h"

#include <stdlib.h>

/* Add the rows of a key that wait. */
static void add_queue(const BinaryRows *rows, BinaryWork *work, int32_t n, int32_t key)
{
    Py_ssize_t from = (Py_ssize_t)key * RUN;
    safecal_add_run(rows, work, work->queue + from, work->queued_L + from, work->queued_weight + from, n, key);
}

/* Row i of a chunk takes its place. */
INLINE void queue_up(BinaryWork *work, Py_ssize_t i, int32_t place, int logits, const double *weight)
{
    work->queue[place] = work->m[i];
    if (logits)
        work->queued_L[place] = work->L[i];
    if (weight)
        work->queued_weight[place] = weight[i];
}

/* The values of the next chunk are fetched meanwhile. */
INLINE void queue_rows(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n, int logits,
                       const double *weight)
{
    Py_ssize_t item = rows->single ? sizeof(float) : sizeof(double), next = rows->n - at < 2 * CHUNK ? at : at + CHUNK;
    const char *ahead = (const char *)rows->values + next * item;
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t key = work->key[i], place = work->next[key];
        if (i % LANES == 0)
            PREFETCH(ahead + i * item);
        queue_up(work, i, place, logits, weight);
        place++;
        if (place % RUN == 0) {
            place -= RUN;
            add_queue(rows, work, RUN, key);
        }
        work->next[key] = place;
    }
}

FAST static void queue_chunk(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)
{
    if (rows->weight)
        queue_rows(rows, work, at, n, rows->logits, rows->weight + at);
    else if (rows->logits)
        queue_rows(rows, work, at, n, 1, NULL);
    else
        queue_rows(rows, work, at, n, 0, NULL);
}

static int one_key(const int32_t *key, Py_ssize_t n)
{
    Py_ssize_t same = key[0] == key[n / 2];
    while (same && same < n && key[same] == key[0])
        same++;
    return same == n;
}

/* Rows of one key are added at once; others wait. */
static void add_chunk(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)
{
    if (rows->keys > 1 && !one_key(work->key, n)) {
        queue_chunk(rows, work, at, n);
        return;
    }
    for (Py_ssize_t i = 0; i < n; i += RUN) {
        int32_t some = (int32_t)(n - i < RUN ? n - i : RUN);
        if (rows->weight)
            memcpy(work->run_weight, rows->weight + at + i, (size_t)some * sizeof(double));
        safecal_add_run(rows, work, work->m + i, work->L + i, work->run_weight, some, work->key[0]);
    }
}

static double counted(const uint64_t *lanes)
{
    uint64_t all = 0;
    for (int lane = 0; lane < LANES; lane++)
        all += lanes[lane];
    return (double)all;
}

/* Add the rows that wait, and add up the lanes. */
static void finish(const BinaryRows *rows, BinaryWork *work, int32_t key)
{
    int columns = rows->weight ? WEIGHTED_SUMS : COLUMNS;
    double *sums = rows->sums + (columns + 2) * (Py_ssize_t)key, count;
    const double *total = work->total + (Py_ssize_t)key * WEIGHTED_SUMS * LANES;
    const uint64_t *seen = work->seen + (Py_ssize_t)key * 2 * LANES;
    int32_t waiting = work->next[key] % RUN;
    if (waiting)
        add_queue(rows, work, waiting, key);
    count = (double)work->count[key];
    if (rows->weight)
        for (int j = 0; j < columns; j++)
            sums[j] = added(total + j * LANES);
    else {
        for (int j = 0; j < 6; j++)
            sums[j] = added(total + j * LANES);
        sums[6] = count - added(total + 6 * LANES);
        sums[7] = count - counted(seen);
        sums[8] = added(total + 7 * LANES);
        sums[9] = added(total + 8 * LANES);
        sums[10] = counted(seen + LANES);
    }
    if (rows->nodes)
        for (int j = 0; j < AT_NODES; j++)
            rows->nodes[(Py_ssize_t)key * AT_NODES + j] = added(work->nodes + ((Py_ssize_t)key * AT_NODES + j) * LANES);
    sums[columns] = (double)work->impossible[key];
    sums[columns + 1] = count;
}

static int64_t add_all(const BinaryRows *rows, BinaryWork *work)
{
    for (Py_ssize_t at = 0; at < rows->n; at += CHUNK) {
        Py_ssize_t n = rows->n - at < CHUNK ? rows->n - at : CHUNK;
        if (!safecal_to_odds(rows, work, at, n))
            return -1;
        add_chunk(rows, work, at, n);
    }
    for (int32_t k = 0; k < rows->keys; k++)
        finish(rows, work, k);
    if (rows->spectrum)
        safecal_keep_spectrum(rows, work);
    return work->certain;
}

/* Take so many doubles from what was allocated. */
static double *part_of(double **free_part, size_t size)
{
    double *part = *free_part;
    *free_part += size;
    return part;
}

int64_t safecal_add_binary(const BinaryRows *rows)
{
    size_t keys = (size_t)rows->keys, queue = keys * RUN, work_size = (sizeof(BinaryWork) + 63) / 64 * 8;
    size_t sums = keys * (WEIGHTED_SUMS + 2) * LANES, spectrum = rows->spectrum ? (KINDS + 1) * MOMENTS : 0;
    size_t nodes = rows->nodes ? keys * AT_NODES * LANES : 0;
    size_t size = 8 + work_size + spectrum + sums + nodes + 3 * queue;
    double *all = malloc(size * sizeof *all), *free_part = all;
    BinaryWork *work;
    int64_t certain;
    if (!all)
        return -2;
    while ((uintptr_t)free_part % 64)
        free_part++;
    work = (BinaryWork *)part_of(&free_part, work_size);
    memset(work, 0, sizeof *work);
    work->spectrum = part_of(&free_part, spectrum);
    work->total = part_of(&free_part, keys * WEIGHTED_SUMS * LANES);
    work->seen = (uint64_t *)part_of(&free_part, keys * 2 * LANES);
    work->nodes = part_of(&free_part, nodes);
    memset(work->spectrum, 0, (spectrum + sums + nodes) * sizeof(double));
    work->queue = part_of(&free_part, queue);
    work->queued_L = part_of(&free_part, queue);
    work->queued_weight = part_of(&free_part, queue);
    for (int32_t k = 0; k < rows->keys; k++)
        work->next[k] = k * RUN;
    certain = add_all(rows, work);
    free(all);
    return certain;
}
