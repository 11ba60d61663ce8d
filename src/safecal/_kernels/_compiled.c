/* The module: Python's arguments in, the kernels of the other files at work without the interpreter's lock. */

#include "_nodes.h"

#include <stdlib.h>

/* A contiguous buffer of so many items of one size; -1 with an exception where it is none. */
static int take(PyObject *object, Py_buffer *view, int flags, Py_ssize_t item, Py_ssize_t items, const char *name)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags)) {
        view->obj = NULL;
        return -1;
    }
    if (view->itemsize != item || view->len % item || view->len / item != items) { /* a product could overflow */
        PyErr_Format(PyExc_ValueError, "%s must hold %zd items of %zd bytes", name, items, item);
        return -1;
    }
    if ((uintptr_t)view->buf % (size_t)item) {
        PyErr_Format(PyExc_ValueError, "%s must be aligned", name);
        return -1;
    }
    return 0;
}

/* Outcomes of one byte each, which may stand apart as the lowest bytes of words; their step, or -1. */
static Py_ssize_t take_outcomes(PyObject *object, Py_buffer *view, Py_ssize_t items)
{
    Py_ssize_t step;
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO)) {
        view->obj = NULL;
        return -1;
    }
    step = view->ndim == 1 && items > 1 ? view->strides[0] : 1;
    if (view->ndim != 1 || view->itemsize != 1 || view->shape[0] != items || (step != 1 && step != WORD)) {
        PyErr_Format(PyExc_ValueError, "happened must hold %zd items of 1 bytes, one for each %d or %d", items, 1, WORD);
        return -1;
    }
    return step;
}

/* The same, and nothing for None. */
static int take_if(PyObject *object, Py_buffer *view, int flags, Py_ssize_t item, Py_ssize_t items, const char *name)
{
    return object == Py_None ? 0 : take(object, view, flags, item, items, name);
}

static void release(Py_buffer *views, int count)
{
    for (int k = 0; k < count; k++)
        if (views[k].obj)
            PyBuffer_Release(views + k);
}

static PyObject *binary_sums(PyObject *self, PyObject *args)
{
    PyObject *values, *happened, *weight, *edges, *index, *sums, *spectrum, *nodes = Py_None, *result = NULL;
    Py_buffer views[8];
    Py_ssize_t n, keys, item, columns;
    BinaryRows rows;
    int64_t certain;
    (void)self;
    memset(views, 0, sizeof views);
    memset(&rows, 0, sizeof rows);
    if (!PyArg_ParseTuple(args, "nnniiOOOOOOO|O", &n, &keys, &item, &rows.logits, &rows.confidence, &values, &happened,
                          &weight, &edges, &index, &sums, &spectrum, &nodes))
        return NULL;
    if (n < 0 || keys < 1 || keys > MOST_KEYS || (item != 4 && item != 8)) {
        PyErr_Format(PyExc_ValueError, "keys must lie between 1 and %d, items must have 4 or 8 bytes", MOST_KEYS);
        return NULL;
    }
    columns = (weight == Py_None ? COLUMNS : WEIGHTED_SUMS) + 2;
    if (take(values, views, 0, item, n, "values") || (rows.step = take_outcomes(happened, views + 1, n)) < 0 ||
        take_if(edges, views + 2, 0, 8, keys + 1, "edges") || take_if(index, views + 3, 0, 8, n, "index") ||
        take(sums, views + 4, PyBUF_WRITABLE, 8, keys * columns, "sums") ||
        take_if(weight, views + 5, 0, 8, n, "weight") ||
        take_if(spectrum, views + 6, PyBUF_WRITABLE, 8, KINDS * MOMENTS, "spectrum") ||
        take_if(nodes, views + 7, PyBUF_WRITABLE, 8, keys * AT_NODES, "nodes"))
        goto end;
    rows.values = views[0].buf, rows.happened = views[1].buf, rows.edges = views[2].buf, rows.index = views[3].buf;
    rows.sums = views[4].buf, rows.weight = views[5].buf, rows.spectrum = views[6].buf, rows.nodes = views[7].buf;
    rows.n = n, rows.keys = (int32_t)keys, rows.single = item == 4;
    Py_BEGIN_ALLOW_THREADS
    certain = safecal_add_binary(&rows);
    Py_END_ALLOW_THREADS
    result = certain == -2 ? PyErr_NoMemory() : PyLong_FromLongLong(certain);
end:
    release(views, 8);
    return result;
}

/* As many items for each of so many; -1, which no buffer has, where that is no size. */
static Py_ssize_t times(Py_ssize_t count, Py_ssize_t each)
{
    return count > PY_SSIZE_T_MAX / each ? -1 : count * each;
}

static int all_classes(const int64_t *y, Py_ssize_t n, Py_ssize_t classes)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (y[i] < 0 || y[i] >= classes)
            return 0;
    return 1;
}

static PyObject *class_scores(PyObject *self, PyObject *args)
{
    PyObject *values, *y, *columns, *top, *nodes = Py_None, *result = NULL;
    Py_buffer views[5];
    Py_ssize_t n, classes, item;
    ClassRows rows;
    int logits, fits = 0;
    double *work = NULL;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nnniOOOO|O", &n, &classes, &item, &logits, &values, &y, &columns, &top, &nodes))
        return NULL;
    if (n < 0 || classes < 2 || classes > PY_SSIZE_T_MAX / 256 || (item != 4 && item != 8)) {
        PyErr_SetString(PyExc_ValueError, "there must be 2 classes or more, items must have 4 or 8 bytes");
        return NULL;
    }
    if (take(values, views, 0, item, times(n, classes), "values") || take(y, views + 1, 0, 8, n, "y") ||
        take(columns, views + 2, PyBUF_WRITABLE, 8, times(n, SCORES), "columns") ||
        take(top, views + 3, PyBUF_WRITABLE, 8, n, "top") ||
        take_if(nodes, views + 4, PyBUF_WRITABLE, 8, times(n, NODES * 4), "nodes"))
        goto end;
    work = malloc(2 * (size_t)tile_size(classes) * sizeof *work);
    if (!work) {
        PyErr_NoMemory();
        goto end;
    }
    rows.values = views[0].buf, rows.y = views[1].buf, rows.columns = views[2].buf, rows.top = views[3].buf;
    rows.nodes = views[4].buf, rows.n = n, rows.classes = classes, rows.single = item == 4;
    Py_BEGIN_ALLOW_THREADS
    fits = all_classes(rows.y, n, classes);
    if (fits && logits)
        safecal_score_logits(&rows, work);
    else if (fits)
        safecal_score_shares(&rows, work);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(fits);
end:
    free(work);
    release(views, 5);
    return result;
}

static PyObject *gap_moments(PyObject *self, PyObject *args)
{
    PyObject *values, *columns, *result = NULL;
    Py_buffer views[2];
    Py_ssize_t item;
    GapRows rows;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nnndOO", &rows.n, &rows.classes, &item, &rows.beta, &values, &columns))
        return NULL;
    if (rows.n < 0 || rows.classes < 2 || rows.classes > PY_SSIZE_T_MAX / 256 || (item != 4 && item != 8) ||
        !(rows.beta >= LEAST_BETA)) {
        PyErr_SetString(PyExc_ValueError, "there must be 2 classes or more, items of 4 or 8 bytes, beta of at least 1e-9");
        return NULL;
    }
    if (!(take(values, views, 0, item, times(rows.n, rows.classes), "values") ||
          take(columns, views + 1, PyBUF_WRITABLE, 8, times(rows.n, GAP_COLUMNS), "columns"))) {
        rows.values = views[0].buf, rows.columns = views[1].buf, rows.single = item == 4;
        Py_BEGIN_ALLOW_THREADS
        safecal_gap_moments(&rows);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release(views, 2);
    return result;
}

static PyObject *sum_by_key(PyObject *self, PyObject *args)
{
    PyObject *column, *index, *sums, *result = NULL;
    Py_buffer views[3];
    Py_ssize_t n, keys;
    int done = 0;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nnOOO", &n, &keys, &column, &index, &sums))
        return NULL;
    if (n < 0 || keys < 1 || keys > MOST_KEYS) {
        PyErr_Format(PyExc_ValueError, "keys must lie between 1 and %d", MOST_KEYS);
        return NULL;
    }
    if (!(take(column, views, 0, 8, n, "column") || take(index, views + 1, 0, 8, n, "index") ||
          take(sums, views + 2, PyBUF_WRITABLE, 8, keys, "sums"))) {
        Py_BEGIN_ALLOW_THREADS
        done = safecal_sum_by_key(views[0].buf, views[1].buf, n, keys, views[2].buf);
        Py_END_ALLOW_THREADS
        result = PyBool_FromLong(done);
    }
    release(views, 3);
    return result;
}

static PyObject *logistic_sums(PyObject *self, PyObject *args)
{
    PyObject *z, *away, *mass, *result = NULL;
    Py_buffer views[3];
    Py_ssize_t n;
    double shift, slope, sums[LOGISTIC];
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nddOOO", &n, &shift, &slope, &z, &away, &mass))
        return NULL;
    if (!(take(z, views, 0, 8, n, "z") || take(away, views + 1, 0, 8, n, "away") ||
          take(mass, views + 2, 0, 8, n, "mass"))) {
        safecal_add_logistic(shift, slope, views[0].buf, views[1].buf, views[2].buf, n, sums);
        result = Py_BuildValue("(dddddd)", sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]);
    }
    release(views, 3);
    return result;
}

static PyObject *two_points(PyObject *self, PyObject *args)
{
    PyObject *moments, *centres, *L, *n, *set, *result = NULL;
    Py_buffer views[5];
    Py_ssize_t sets, cells;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nnOOOOO", &sets, &cells, &moments, &centres, &L, &n, &set))
        return NULL;
    if (cells < 1 || sets < cells || sets % cells || sets > PY_SSIZE_T_MAX / MOMENTS) {
        PyErr_SetString(PyExc_ValueError, "there must be cells, and as many sets in each of them");
        return NULL;
    }
    if (!(take(moments, views, 0, 8, sets * MOMENTS, "moments") || take(centres, views + 1, 0, 8, cells, "centres") ||
          take(L, views + 2, PyBUF_WRITABLE, 8, 2 * sets, "L") || take(n, views + 3, PyBUF_WRITABLE, 8, 2 * sets, "n") ||
          take(set, views + 4, PyBUF_WRITABLE, 8, 2 * sets, "set")))
        result = PyLong_FromSsize_t(safecal_two_points(views[0].buf, sets, sets / cells, views[1].buf, views[2].buf,
                                                       views[3].buf, views[4].buf));
    release(views, 5);
    return result;
}

static PyObject *sum_points(PyObject *self, PyObject *args)
{
    PyObject *L, *n, *wrong, *positive, *cell, *used, *sums, *result = NULL;
    Py_buffer views[7];
    Py_ssize_t count;
    PointRows points;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nOOOOOOO", &count, &L, &n, &wrong, &positive, &cell, &used, &sums))
        return NULL;
    if (!(take(L, views, 0, 8, count, "L") || take(n, views + 1, 0, 8, count, "n") ||
          take(wrong, views + 2, 0, 1, count, "wrong") || take(positive, views + 3, 0, 1, count, "positive") ||
          take(cell, views + 4, 0, 8, count, "cell") || take(used, views + 5, PyBUF_WRITABLE, 8, 2 * CELLS, "used") ||
          take(sums, views + 6, PyBUF_WRITABLE, 8, 2 * CELLS * POINT_SUMS, "sums"))) {
        points.L = views[0].buf, points.n = views[1].buf, points.wrong = views[2].buf, points.positive = views[3].buf;
        points.cell = views[4].buf, points.count = count;
        if (all_classes(points.cell, count, CELLS))
            result = PyLong_FromSsize_t(safecal_sum_points(&points, views[5].buf, views[6].buf));
        else
            PyErr_Format(PyExc_ValueError, "cells must lie between 0 and %d", CELLS - 1);
    }
    release(views, 7);
    return result;
}

static PyObject *tempered_sums(PyObject *self, PyObject *args)
{
    PyObject *L, *n, *result = NULL;
    Py_buffer views[2];
    Py_ssize_t count;
    double beta, sums[TEMPERED];
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "ndOO", &count, &beta, &L, &n))
        return NULL;
    if (!(take(L, views, 0, 8, count, "L") || take(n, views + 1, 0, 8, count, "n"))) {
        safecal_add_tempered(beta, views[0].buf, views[1].buf, count, sums);
        result = Py_BuildValue("(dddd)", sums[0], sums[1], sums[2], sums[3]);
    }
    release(views, 2);
    return result;
}

static PyObject *tempered_change(PyObject *self, PyObject *args)
{
    PyObject *L, *n, *result = NULL;
    Py_buffer views[2];
    Py_ssize_t count;
    double beta, other;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nddOO", &count, &beta, &other, &L, &n))
        return NULL;
    if (!(take(L, views, 0, 8, count, "L") || take(n, views + 1, 0, 8, count, "n")))
        result = PyFloat_FromDouble(safecal_change(beta, other, views[0].buf, views[1].buf, count));
    release(views, 2);
    return result;
}

static int few_dimensions(Py_ssize_t n, Py_ssize_t d)
{
    if (n >= 0 && d >= 1 && d <= MOST_DIMENSIONS)
        return 1;
    PyErr_Format(PyExc_ValueError, "there must be 1 to %d dimensions", MOST_DIMENSIONS);
    return 0;
}

static PyObject *sound(PyObject *self, PyObject *args)
{
    PyObject *matrices, *result = NULL;
    Py_buffer view;
    Py_ssize_t n, d;
    double asymmetry, share;
    int fine;
    (void)self;
    memset(&view, 0, sizeof view);
    if (!PyArg_ParseTuple(args, "nnddO", &n, &d, &asymmetry, &share, &matrices) || !few_dimensions(n, d))
        return NULL;
    if (!take(matrices, &view, 0, 8, times(n, d * d), "matrices")) {
        Py_BEGIN_ALLOW_THREADS
        fine = safecal_sound(view.buf, n, d, asymmetry, share);
        Py_END_ALLOW_THREADS
        result = PyBool_FromLong(fine);
    }
    release(&view, 1);
    return result;
}

static PyObject *state_scores(PyObject *self, PyObject *args)
{
    PyObject *residual, *matrices, *nees, *logdet, *result = NULL;
    Py_buffer views[4];
    Py_ssize_t n, d;
    int fine;
    (void)self;
    memset(views, 0, sizeof views);
    if (!PyArg_ParseTuple(args, "nnOOOO", &n, &d, &residual, &matrices, &nees, &logdet) || !few_dimensions(n, d))
        return NULL;
    if (!(take(residual, views, 0, 8, times(n, d), "residual") ||
          take(matrices, views + 1, 0, 8, times(n, d * d), "matrices") ||
          take(nees, views + 2, PyBUF_WRITABLE, 8, n, "nees") ||
          take(logdet, views + 3, PyBUF_WRITABLE, 8, n, "logdet"))) {
        Py_BEGIN_ALLOW_THREADS
        fine = safecal_score_states(views[0].buf, views[1].buf, n, d, views[2].buf, views[3].buf);
        Py_END_ALLOW_THREADS
        result = PyBool_FromLong(fine);
    }
    release(views, 4);
    return result;
}

static PyObject *instructions(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
#ifdef CHOOSES
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4"))
        return PyUnicode_FromString("x86-64-v4 (AVX-512)");
    if (__builtin_cpu_supports("x86-64-v3"))
        return PyUnicode_FromString("x86-64-v3 (AVX2)");
#endif
    return PyUnicode_FromString("the instructions it was built for");
}

static PyMethodDef methods[] = {
    {"instructions", instructions, METH_NOARGS, "instructions() -> str\n\nName the instruction set of the loops."},
    {"binary_sums", binary_sums, METH_VARARGS,
     "binary_sums(n, keys, item, logits, confidence, values, happened, weight, edges, index, sums, spectrum,\n"
     "            nodes=None)\n"
     "\nPut the sums of n rows into `sums` (keys, 13), with weights (keys, 20), and unless None into `nodes` (keys, 20),\n"
     "add to `spectrum` (450, 2, 2, 4), and return the number of certain rows. -1 where a row is too near to certainty,\n"
     "or impossible and weighted; then they hold nothing of use."},
    {"class_scores", class_scores, METH_VARARGS,
     "class_scores(n, classes, item, logits, values, y, columns, top, nodes=None) -> bool\n\n"
     "Score n rows of logits or probabilities, of 4 or 8 bytes each, into `columns` (7, n), `top` (n,) and, unless\n"
     "None, `nodes` (5, 4, n). False where y is no class."},
    {"gap_moments", gap_moments, METH_VARARGS,
     "gap_moments(n, classes, item, beta, values, columns)\n\n"
     "Put mean, variance and third cumulant of how far logits lie below the largest one, under p**beta, and that one,\n"
     "into `columns` (4, n), for n rows of logits of 4 or 8 bytes each."},
    {"sum_by_key", sum_by_key, METH_VARARGS,
     "sum_by_key(n, keys, column, index, sums) -> bool\n\n"
     "Put the sum of a column over the rows of each key into `sums` (keys,). False where there is no such key."},
    {"logistic_sums", logistic_sums, METH_VARARGS,
     "logistic_sums(n, shift, slope, z, away, mass) -> tuple\n\n"
     "Sum n rows of a logistic regression: minus its log-likelihood, and the first and second derivatives of that."},
    {"two_points", two_points, METH_VARARGS,
     "two_points(sets, cells, moments, centres, L, n, set) -> int\n\n"
     "Put log-odds and counts of points into `L` and `n`, and the number of their set into `set` (2 * sets,), from\n"
     "`moments` (sets, 4), and return how many they are."},
    {"sum_points", sum_points, METH_VARARGS,
     "sum_points(count, L, n, wrong, positive, cell, used, sums) -> int\n\n"
     "Sum points by their place in the order of probabilities, put the places that occur into `used` (900,) and their\n"
     "sums into `sums` (900, 11), and return how many they are."},
    {"tempered_sums", tempered_sums, METH_VARARGS,
     "tempered_sums(count, beta, L, n) -> tuple\n\n"
     "Sum log(1 + exp(-beta L)) and the first three cumulants of the surprise over points."},
    {"tempered_change", tempered_change, METH_VARARGS,
     "tempered_change(count, beta, other, L, n) -> float\n\n"
     "Return by how much the first of these sums is larger than at another beta."},
    {"sound", sound, METH_VARARGS,
     "sound(n, d, asymmetry, share, matrices) -> bool\n\n"
     "Tell whether n matrices (d, d) are finite, symmetric and positive definite, by these shares of their scale."},
    {"state_scores", state_scores, METH_VARARGS,
     "state_scores(n, d, residual, matrices, nees, logdet) -> bool\n\n"
     "Put NEES and log-determinant of n residuals (n, d), with covariances (n, d, d), into `nees` and `logdet`.\n"
     "False where a covariance is not positive definite."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void)
{
    return PyModuleDef_Init(&module);
}
