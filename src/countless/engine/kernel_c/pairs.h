/* Filters on exact counts of pairs of columns. Its readable twin is Crossed in ../fusion/pair_filters.py. */
#ifndef COUNTLESS_PAIRS_H
#define COUNTLESS_PAIRS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "views.h"

/* A filter in the buckets of its column. `may` and `must` are the rows of each bucket that it may and must keep. */
typedef struct {
    Py_buffer weights, counts, starts;
    int held, place, buckets, first;
    int64_t most, least;
    int64_t *may, *must, *rows;
    int *touched, touches, *whole, wholes; /* runs of buckets that are touched, and kept whole: begin, end, begin, ... */
} PairFilter;

static void pair_filters_free(PairFilter *filters, int count) {
    for (int i = 0; i < count; i++) {
        PairFilter *own = &filters[i];
        Py_buffer *views[] = {&own->weights, &own->counts, &own->starts};
        for (int v = 0; v < own->held; v++) PyBuffer_Release(views[v]);
        free(own->may);
        free(own->touched);
    }
    free(filters);
}

static int add_run(int *runs, int count, int bucket) {
    if (count && runs[2 * count - 1] == bucket) {
        runs[2 * count - 1]++;
        return count;
    }
    runs[2 * count] = bucket;
    runs[2 * count + 1] = bucket + 1;
    return count + 1;
}

static double weight_of(const PairFilter *own, Py_ssize_t code) {
    return own->weights.itemsize == 1 ? (double)((const uint8_t *)own->weights.buf)[code]
                                      : ((const double *)own->weights.buf)[code];
}

/* One filter from its tuple: (place among the members or -1, weights, counts, starts of buckets, the first's number). */
static int read_pair_filter(PyObject *item, PairFilter *own) {
    PyObject *weights, *counts, *starts;
    if (!PyArg_ParseTuple(item, "iOOOi", &own->place, &weights, &counts, &starts, &own->first)) return 0;
    if (!view_of(counts, &own->counts, "lq", -1)) return 0;
    Py_ssize_t codes = own->counts.len / (Py_ssize_t)sizeof(int64_t);
    int found = view_of(weights, &own->weights, "?d", codes);
    if (!found) {
        PyBuffer_Release(&own->counts);
        return 0;
    }
    own->held = 2;
    if (!view_of(starts, &own->starts, "lq", -1)) return 0;
    own->held = 3;
    const int64_t *begin = own->starts.buf, *rows = own->counts.buf;
    int buckets = own->buckets = (int)(own->starts.len / (Py_ssize_t)sizeof(int64_t));
    own->may = malloc((size_t)(3 * buckets + 1) * sizeof(int64_t));
    own->touched = malloc((size_t)(4 * buckets + 1) * sizeof(int));
    if (!own->may || !own->touched) {
        PyErr_NoMemory();
        return 0;
    }
    own->must = own->may + buckets;
    own->rows = own->must + buckets;
    own->whole = own->touched + 2 * buckets;
    for (int b = 0; b < buckets; b++) {
        Py_ssize_t end = b + 1 < buckets ? begin[b + 1] : codes;
        int64_t all = 0, may = 0, must = 0;
        if (begin[b] < 0 || begin[b] > end || end > codes) {
            PyErr_SetString(PyExc_ValueError, "a bucket is out of range");
            return 0;
        }
        for (Py_ssize_t code = begin[b]; code < end; code++) {
            double weight = weight_of(own, code);
            all += rows[code];
            may += weight > 0 ? rows[code] : 0;
            must += weight == 1 ? rows[code] : 0;
        }
        own->rows[b] = all;
        own->may[b] = may;
        own->must[b] = must;
        own->most += may;
        own->least += must;
        if (may) own->touches = add_run(own->touched, own->touches, b);
        if (may && must == all) own->wholes = add_run(own->whole, own->wholes, b);
    }
    return 1;
}

static int64_t before_at(const Py_buffer *before, size_t place) {
    return before->itemsize == 4 ? ((const int32_t *)before->buf)[place] : ((const int64_t *)before->buf)[place];
}

static int64_t rows_in(const Py_buffer *before, size_t row, const int *runs, int count, int first) {
    int64_t found = 0;
    for (int r = 0; r < count; r++)
        found += before_at(before, row + first + runs[2 * r + 1]) - before_at(before, row + first + runs[2 * r]);
    return found;
}

/* What filter i keeps beside filter j, bucket by bucket; shares (buckets of i, count) take how much of each j touches. */
static void cross_two(const Py_buffer *before, size_t width, const PairFilter *filters, int count, int i, int j,
                      int64_t *most, int64_t *least, double *shares) {
    const PairFilter *own = &filters[i], *other = &filters[j];
    *most = *least = 0;
    for (int b = 0; b < own->buckets; b++) {
        double *share = &shares[(size_t)b * count + j];
        *share = 0;
        if (!own->may[b]) continue;
        size_t row = (size_t)(own->first + b) * width;
        int64_t touched = rows_in(before, row, other->touched, other->touches, other->first);
        int64_t kept = rows_in(before, row, other->whole, other->wholes, other->first) - (own->rows[b] - own->must[b]);
        *most += touched < own->may[b] ? touched : own->may[b];
        *least += kept > 0 ? kept : 0;
        *share = (double)touched / (double)own->rows[b];
    }
}

static void cross_all(const Py_buffer *before, const uint8_t *known, int members, int64_t rows,
                      const PairFilter *filters, int count, int64_t *most, int64_t *least, double *shares) {
    size_t width = 0, *from = calloc((size_t)count + 1, sizeof(size_t));
    int inside = 0, empty = 0;
    for (int i = 0; i < count; i++) {
        inside += filters[i].place >= 0;
        empty |= filters[i].most == 0;
        if (from) from[i + 1] = from[i] + (filters[i].place < 0 ? 0 : (size_t)filters[i].buckets * count);
    }
    while (width * (width + 1) < (size_t)(before->len / before->itemsize)) width++; /* (width, width + 1) */
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            int64_t both = filters[i].least + filters[j].least - rows;
            most[i * count + j] = filters[i].most < filters[j].most ? filters[i].most : filters[j].most;
            least[i * count + j] = i == j ? filters[i].least : both > 0 ? both : 0;
        }
    }
    for (int i = 0; from && inside > 1 && !empty && i < count; i++) {
        for (int j = 0; j < i; j++) {
            int one = filters[i].place, two = filters[j].place;
            if (one < 0 || two < 0 || !known[one * members + two]) continue;
            int64_t high[2], low[2];
            cross_two(before, width + 1, filters, count, i, j, &high[0], &low[0], shares + from[i]);
            cross_two(before, width + 1, filters, count, j, i, &high[1], &low[1], shares + from[j]);
            most[i * count + j] = most[j * count + i] = high[0] < high[1] ? high[0] : high[1];
            least[i * count + j] = least[j * count + i] = low[0] > low[1] ? low[0] : low[1];
        }
    }
    free(from);
}

/* cross(before, known, members, rows, filters, most, least, shares): see Crossed. `shares` has a row for each bucket of
 * each filter that takes part in pairs, and a column for each filter. */
static PyObject *pairs_cross(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *arrays[5], *list, *done = NULL;
    int members;
    long long rows;
    if (!PyArg_ParseTuple(args, "OOiLOOOO", &arrays[0], &arrays[1], &members, &rows, &list, &arrays[2], &arrays[3],
                          &arrays[4]))
        return NULL;
    int count = PyList_Check(list) ? (int)PyList_Size(list) : 0, held = 0, good = count > 0;
    Py_buffer views[5];
    PairFilter *filters = calloc((size_t)count + 1, sizeof(PairFilter));
    Py_ssize_t room = 0, most = 0;
    for (int i = 0; filters && good && i < count; i++) {
        good = read_pair_filter(PyList_GetItem(list, i), &filters[i]);
        if (good && filters[i].place >= 0) room += (Py_ssize_t)filters[i].buckets * count;
        if (good && filters[i].place >= 0 && filters[i].first + filters[i].buckets > most)
            most = filters[i].first + filters[i].buckets;
        if (good && (filters[i].place >= members || filters[i].first < 0)) good = 0;
    }
    const char *formats[] = {"ilq", "?", "lq", "lq", "d"};
    Py_ssize_t items[] = {-1, (Py_ssize_t)members * members, (Py_ssize_t)count * count, (Py_ssize_t)count * count, room};
    while (filters && good && held < 5 &&
           view_with(arrays[held], &views[held], formats[held], items[held], held < 2 ? 0 : PyBUF_WRITABLE))
        held++;
    if (held == 5 && most * (most + 1) <= views[0].len / views[0].itemsize) {
        cross_all(&views[0], views[1].buf, members, rows, filters, count, views[2].buf, views[3].buf, views[4].buf);
        done = Py_None;
        Py_INCREF(done);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "the filters do not fit the pairs");
    }
    while (held--) PyBuffer_Release(&views[held]);
    if (filters) pair_filters_free(filters, count);
    return done;
}

/* For each bucket of the rows from `row` on, the root of the product of its shares among `others`: the codes of a bucket
 * are alike. Neighbouring codes lead to one symbol, which takes the most that one of them has, and at least `least`; the
 * last place is for MASK. */
static int hint_symbols(const double *row, int columns, const int *others, int count, const Py_buffer *starts,
                        int64_t codes, double least, double *out, int64_t symbols) {
    const int64_t *start = starts->buf;
    int64_t buckets = starts->len / (Py_ssize_t)sizeof(int64_t), each = (codes + symbols - 1) / symbols;
    for (int64_t v = 0; v < symbols; v++) out[v] = least;
    out[symbols] = 1.0;
    for (int64_t b = 0; b < buckets; b++, row += columns) {
        int64_t end = b + 1 < buckets ? start[b + 1] : codes;
        double product = 1.0;
        if (start[b] < 0 || start[b] > end || end > codes) return 0;
        for (int o = 0; o < count; o++) product *= row[others[o]];
        double root = sqrt(product);
        for (int64_t code = start[b]; code < end; code++)
            if (root > out[code / each]) out[code / each] = root;
    }
    return 1;
}

/* One hint from its tuple: (from, others, starts, codes, out). */
static int read_hint(PyObject *item, const Py_buffer *table, int columns, double least) {
    PyObject *list, *starts, *out;
    Py_ssize_t from, codes;
    if (!PyArg_ParseTuple(item, "nO!OnO", &from, &PyTuple_Type, &list, &starts, &codes, &out)) return 0;
    int count = (int)PyTuple_Size(list), *others = malloc(((size_t)count + 1) * sizeof(int)), good = others != NULL;
    for (int o = 0; good && o < count; o++) {
        long other = PyLong_AsLong(PyTuple_GetItem(list, o));
        good = other >= 0 && other < columns;
        others[o] = (int)other;
    }
    Py_buffer begin, hint;
    if (good && (good = view_of(starts, &begin, "lq", -1))) {
        if ((good = view_of_output(out, &hint, "d", -1))) {
            Py_ssize_t symbols = hint.len / (Py_ssize_t)sizeof(double) - 1;
            Py_ssize_t buckets = begin.len / (Py_ssize_t)sizeof(int64_t);
            good = from >= 0 && codes >= 0 && symbols > 0 && columns > 0 &&
                   buckets <= (table->len / (Py_ssize_t)sizeof(double) - from) / columns &&
                   hint_symbols((const double *)table->buf + from, columns, others, count, &begin, codes, least, hint.buf,
                                symbols);
            PyBuffer_Release(&hint);
        }
        PyBuffer_Release(&begin);
    }
    free(others);
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the shares do not fit the buckets");
    return good;
}

/* hints(shares, columns, least, asked): see Crossed.along. */
static PyObject *pairs_hints(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *shares, *list;
    int columns, good = 1;
    double least;
    if (!PyArg_ParseTuple(args, "OidO!", &shares, &columns, &least, &PyList_Type, &list)) return NULL;
    Py_buffer table;
    if (!view_of(shares, &table, "d", -1)) return NULL;
    for (Py_ssize_t i = 0; good && i < PyList_Size(list); i++)
        good = read_hint(PyList_GetItem(list, i), &table, columns, least);
    PyBuffer_Release(&table);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

#endif
