/* Sets of rows as bits: how many rows are in all of several sets. And two rows of every code of a column. */
#ifndef COUNTLESS_ROW_SETS_H
#define COUNTLESS_ROW_SETS_H

#include <stdint.h>

#include "arithmetic.h"

#define MOST_SETS 64

/* How many bits are set in all of the sets, which have `words` words each. */
FAST static int64_t count_common(const uint64_t *const *set, int count, Py_ssize_t words) {
    int64_t total = 0;
    for (Py_ssize_t w = 0; w < words; w++) {
        uint64_t common = set[0][w];
        for (int s = 1; s < count; s++) common &= set[s][w];
        total += __builtin_popcountll(common);
    }
    return total;
}

static PyObject *row_sets_common(PyObject *self, PyObject *list) {
    (void)self;
    Py_buffer views[MOST_SETS];
    const uint64_t *set[MOST_SETS];
    int count = PyList_Check(list) ? (int)PyList_Size(list) : 0, held = 0;
    if (count < 1 || count > MOST_SETS) {
        PyErr_Format(PyExc_ValueError, "expected a list of 1 to %d sets", MOST_SETS);
        return NULL;
    }
    PyObject *total = NULL;
    for (; held < count; held++) {
        Py_ssize_t words = held ? views[0].len / (Py_ssize_t)sizeof(uint64_t) : -1;
        if (!view_of(PyList_GetItem(list, held), &views[held], "LQ", words)) break;
        set[held] = views[held].buf;
    }
    if (held == count)
        total = PyLong_FromLongLong(count_common(set, count, views[0].len / (Py_ssize_t)sizeof(uint64_t)));
    while (held--) PyBuffer_Release(&views[held]);
    return total;
}

/* The first two rows of each code, in the order of `order`; -1 where a code has fewer. False if something is out of range. */
#define FIRST_TWO(TYPE)                                                 \
    do {                                                                \
        const TYPE *code = codes;                                       \
        for (Py_ssize_t i = 0; i < rows; i++) {                         \
            int64_t row = order[i];                                     \
            if (row < 0 || row >= rows || code[row] >= size) return 0;  \
            int64_t *first = found + code[row], *second = first + size; \
            if (*first < 0) *first = row;                               \
            else if (*second < 0) *second = row;                        \
        }                                                               \
    } while (0)

static int first_two(const void *codes, int width, const int64_t *order, Py_ssize_t rows, int64_t size, int64_t *found) {
    for (int64_t i = 0; i < 2 * size; i++) found[i] = -1;
    if (width == 1) FIRST_TWO(uint8_t);
    else if (width == 2) FIRST_TWO(uint16_t);
    else FIRST_TWO(uint32_t);
    return 1;
}

static PyObject *row_sets_first_two(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes, *order, *out;
    Py_buffer views[3];
    int sound = 0, held = 0;
    if (!PyArg_ParseTuple(args, "OOO", &codes, &order, &out) || !view_of(order, &views[held], "lq", -1)) return NULL;
    Py_ssize_t rows = views[held++].len / (Py_ssize_t)sizeof(int64_t);
    if (view_of(codes, &views[held], "BHI", rows) && ++held && view_of_output(out, &views[held], "lq", -1)) {
        int64_t size = views[held++].len / (Py_ssize_t)(2 * sizeof(int64_t));
        sound = first_two(views[1].buf, (int)views[1].itemsize, views[0].buf, rows, size, views[2].buf);
        if (!sound) PyErr_SetString(PyExc_ValueError, "a row or a code is out of range");
    }
    while (held--) PyBuffer_Release(&views[held]);
    return sound ? Py_NewRef(Py_None) : NULL;
}

#endif
