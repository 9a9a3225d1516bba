/* Counting of coded rows: how many have an allowed code in every column that is asked about. */
#ifndef COUNTLESS_EVIDENCE_H
#define COUNTLESS_EVIDENCE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"

#define BLOCK 2048  /* rows whose marks stay in the fastest memory */
#define MOST_RUNS 4 /* of allowed codes; a set of more is looked up, code by code */

typedef struct {
    const void *codes; /* one for each row */
    int width;         /* bytes of a code: 1, 2 or 4 */
    const uint8_t *allowed;
    double share; /* of the codes that are allowed, about */
    int runs;     /* of neighbouring allowed codes, or 0 if they are too many */
    uint32_t low[MOST_RUNS], span[MOST_RUNS];
} CodeSet;

/* Columns may have as many codes as there are rows, so both kinds of runs are passed over many codes at a time. */
static void find_runs(CodeSet *set, Py_ssize_t size) {
    static const uint8_t none[64];
    Py_ssize_t found = 0;
    set->runs = 0;
    set->share = 1.0; /* of many runs: they are looked up last, which takes longest */
    for (Py_ssize_t code = 0; code < size; code++) {
        while (code + 64 <= size && !memcmp(set->allowed + code, none, 64)) code += 64;
        if (code == size || !set->allowed[code]) continue;
        Py_ssize_t low = code;
        const uint8_t *end = memchr(set->allowed + code, 0, size - code);
        code = end ? end - set->allowed : size;
        if (set->runs == MOST_RUNS) {
            set->runs = 0;
            return;
        }
        set->low[set->runs] = (uint32_t)low;
        set->span[set->runs++] = (uint32_t)(code - low - 1);
        found += code - low;
    }
    set->share = size ? (double)found / (double)size : 0.0;
}

/* The set that allows least comes first, so that most rows drop out early. */
static int by_share(const void *one, const void *two) {
    double a = ((const CodeSet *)one)->share, b = ((const CodeSet *)two)->share;
    return (a > b) - (a < b);
}

#define MARK(TYPE)                                                                                   \
    do {                                                                                             \
        const TYPE *code = (const TYPE *)set->codes + first;                                         \
        TYPE low = (TYPE)set->low[0], span = (TYPE)set->span[0];                                     \
        if (set->runs == 1) {                                                                        \
            for (int i = 0; i < rows; i++) mark[i] &= (TYPE)(code[i] - low) <= span;                 \
        } else if (set->runs) {                                                                      \
            memset(some, 0, rows);                                                                   \
            for (int r = 0; r < set->runs; r++) {                                                    \
                low = (TYPE)set->low[r], span = (TYPE)set->span[r];                                  \
                for (int i = 0; i < rows; i++) some[i] |= (TYPE)(code[i] - low) <= span;             \
            }                                                                                        \
            for (int i = 0; i < rows; i++) mark[i] &= some[i];                                       \
        } else {                                                                                     \
            for (int i = 0; i < rows; i++) mark[i] &= set->allowed[code[i]];                         \
        }                                                                                            \
    } while (0)

typedef uint8_t marks64 __attribute__((vector_size(64), aligned(1)));

/* How many of at most BLOCK marks are set: in bytes that are side by side, none of which can overflow. */
INLINE int count_marks(int rows, const uint8_t *mark) {
    const uint64_t low = 0x00FF00FF00FF00FFu;
    marks64 sums = {0}, some;
    uint64_t words[8], total = 0;
    int i = 0, found = 0;
    for (; i + 64 <= rows; i += 64) {
        memcpy(&some, mark + i, 64);
        sums += some;
    }
    for (; i < rows; i++) found += mark[i];
    memcpy(words, &sums, 64);
    for (int w = 0; w < 8; w++) total += (words[w] & low) + (words[w] >> 8 & low); /* four sums of 16 bits */
    return found + (int)((total * 0x0001000100010001u) >> 48);
}

/* How many of the rows from `first` on, at most BLOCK, are in every set; mark tells which. */
FAST static int count_block(const CodeSet *sets, int count, Py_ssize_t first, int rows, uint8_t *restrict mark) {
    uint8_t some[BLOCK];
    int left = rows;
    memset(mark, 1, rows);
    for (int s = 0; s < count && left; s++) {
        const CodeSet *set = &sets[s];
        if (set->width == 1)
            MARK(uint8_t);
        else if (set->width == 2)
            MARK(uint16_t);
        else
            MARK(uint32_t);
        left = count_marks(rows, mark);
    }
    return left;
}

/* One set from its pair of arrays; its two buffers go to views. An empty set has no runs and nothing allowed. */
static int read_set(PyObject *pair, Py_ssize_t rows, CodeSet *set, Py_buffer *views, int *held) {
    PyObject *codes, *allowed;
    if (!PyArg_ParseTuple(pair, "OO", &codes, &allowed) || !view_of(codes, &views[*held], "BHI", rows)) return 0;
    set->codes = views[*held].buf;
    set->width = (int)views[(*held)++].itemsize;
    if (!view_of(allowed, &views[*held], "?B", -1)) return 0;
    set->allowed = views[*held].buf;
    find_runs(set, views[(*held)++].len);
    return 1;
}

static PyObject *evidence_count(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *list, *out, *found = NULL;
    Py_ssize_t rows, total = 0;
    if (!PyArg_ParseTuple(args, "OnO", &list, &rows, &out)) return NULL;
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "sets are a list of pairs: codes, and which are allowed");
        return NULL;
    }
    int count = (int)PyList_Size(list), held = 0, sound = 1, marked = out != Py_None;
    CodeSet *sets = calloc(count + 1, sizeof(CodeSet));
    Py_buffer *views = calloc(2 * (size_t)count + 1, sizeof(Py_buffer)), marks;
    if (!sets || !views) {
        PyErr_NoMemory();
        sound = 0;
    }
    for (int s = 0; sound && s < count; s++) sound = read_set(PyList_GetItem(list, s), rows, &sets[s], views, &held);
    if (sound) qsort(sets, (size_t)count, sizeof(CodeSet), by_share);
    if (sound && marked) sound = marked = view_of_output(out, &marks, "?B", rows);
    if (sound) {
        uint8_t own[BLOCK];
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t first = 0; first < rows; first += BLOCK) {
            int some = rows - first < BLOCK ? (int)(rows - first) : BLOCK;
            int left = count_block(sets, count, first, some, own);
            total += left;
            if (marked && left) memcpy((uint8_t *)marks.buf + first, own, some);
            if (marked && !left) memset((uint8_t *)marks.buf + first, 0, some);
        }
        Py_END_ALLOW_THREADS;
        found = PyLong_FromSsize_t(total);
        if (marked) PyBuffer_Release(&marks);
    }
    for (int v = 0; v < held; v++) PyBuffer_Release(&views[v]);
    free(views);
    free(sets);
    return found;
}

/* The sum of the numbers that are marked. */
FAST static int64_t sum_of_marked(const int32_t *numbers, const uint8_t *mark, Py_ssize_t size) {
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < size; i++) total += numbers[i] & -(int32_t)mark[i];
    return total;
}

static PyObject *evidence_sum(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *array, *allowed, *found = NULL;
    Py_buffer numbers, marks;
    if (!PyArg_ParseTuple(args, "OO", &array, &allowed) || !view_of(array, &numbers, "i", -1)) return NULL;
    if (view_of(allowed, &marks, "?B", numbers.len / (Py_ssize_t)sizeof(int32_t))) {
        found = PyLong_FromLongLong(sum_of_marked(numbers.buf, marks.buf, marks.len));
        PyBuffer_Release(&marks);
    }
    PyBuffer_Release(&numbers);
    return found;
}

#endif
