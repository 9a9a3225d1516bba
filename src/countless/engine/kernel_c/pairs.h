/* Filters on exact counts of pairs of columns. Their readable twin is Crossed in ../fusion/pair_filters.py. */
#ifndef COUNTLESS_PAIRS_H
#define COUNTLESS_PAIRS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "digits.h"
#include "sparse_pairs.h"
#include "views.h"

/* ---- the counts of a table ---- */

typedef struct {
    Py_buffer counts, starts; /* the rows of every code; the first code of every bucket */
    int held, place, first, buckets; /* its place among the members or -1; the number of its first bucket */
    int wide;                        /* whether it is the column with many values of a sparse table */
    Py_ssize_t codes;
    int64_t *rows; /* of every bucket */
} PairColumn;

/* What the filter with this number keeps of each code of a wide column. */
typedef struct {
    const SparseCells *cells;
    uint64_t filter, asked;
    void *kept;
} CodeSums;

#define MOST_SUMS 32 /* as in ../fusion/wide_columns.py */

typedef struct {
    Py_buffer before, known;
    int held, columns, members;
    size_t width; /* of a row of `before` */
    int64_t rows;
    PairColumn *column;
    SparseCells *sparse;
    int sparse_count;
    uint64_t filters, asked; /* filters that were read so far; times that sums were asked for */
    CodeSums sums[MOST_SUMS];
} PairTables;

static const char TABLES[] = "countless.engine._kernel.pairs";

static void tables_free(PairTables *tables) {
    for (int c = 0; tables->column && c < tables->columns; c++) {
        PairColumn *own = &tables->column[c];
        if (own->held > 0) PyBuffer_Release(&own->counts);
        if (own->held > 1) PyBuffer_Release(&own->starts);
        free(own->rows);
    }
    for (int s = 0; s < tables->sparse_count; s++) sparse_free(&tables->sparse[s]);
    for (int s = 0; s < MOST_SUMS; s++) free(tables->sums[s].kept);
    free(tables->sparse);
    if (tables->held > 0) PyBuffer_Release(&tables->before);
    if (tables->held > 1) PyBuffer_Release(&tables->known);
    free(tables->column);
    free(tables);
}

static void tables_capsule_free(PyObject *capsule) { tables_free(PyCapsule_GetPointer(capsule, TABLES)); }

/* One column from its tuple: (place among the members or -1, counts, starts of buckets, the first's number). */
static int read_pair_column(PyObject *item, PairTables *tables, PairColumn *own) {
    PyObject *counts, *starts;
    if (!PyArg_ParseTuple(item, "iOOi", &own->place, &counts, &starts, &own->first)) return 0;
    if (!view_of(counts, &own->counts, "lq", -1)) return 0;
    own->held = 1;
    if (!view_of(starts, &own->starts, "lq", -1)) return 0;
    own->held = 2;
    own->codes = own->counts.len / (Py_ssize_t)sizeof(int64_t);
    own->buckets = (int)(own->starts.len / (Py_ssize_t)sizeof(int64_t));
    if (!(own->rows = calloc((size_t)own->buckets + 1, sizeof(int64_t)))) {
        PyErr_NoMemory();
        return 0;
    }
    const int64_t *begin = own->starts.buf, *rows = own->counts.buf;
    int good = own->place < tables->members && own->first >= 0 && own->buckets > 0 && begin[0] == 0 &&
               (own->place < 0 || (size_t)(own->first + own->buckets) <= tables->width);
    for (int b = 0; good && b < own->buckets; b++) {
        int64_t end = b + 1 < own->buckets ? begin[b + 1] : own->codes;
        good = begin[b] <= end && end <= own->codes;
        for (int64_t code = begin[b]; good && code < end; code++) own->rows[b] += rows[code];
    }
    if (!good) PyErr_SetString(PyExc_ValueError, "a column does not fit the pairs");
    return good;
}

/* The sparse tables from a list of tuples. */
static int read_all_sparse(PyObject *list, PairTables *tables) {
    Py_ssize_t sizes[tables->columns + 1];
    for (int c = 0; c < tables->columns; c++) sizes[c] = tables->column[c].codes;
    int count = (int)PyList_Size(list), good = 1;
    if (!(tables->sparse = calloc((size_t)count + 1, sizeof(SparseCells)))) {
        PyErr_NoMemory();
        return 0;
    }
    for (int s = 0; good && s < count; s++) {
        tables->sparse_count = s + 1;
        good = read_sparse(PyList_GetItem(list, s), sizes, tables->columns, &tables->sparse[s]);
        if (good) tables->column[tables->sparse[s].column].wide = 1;
    }
    return good;
}

/* pairs(before, known, members, rows, columns, sparse) -> tables: see Sums. */
static PyObject *pairs_load(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *before, *known, *list, *sparse;
    long long rows;
    PairTables *tables = calloc(1, sizeof(PairTables));
    if (!tables) return PyErr_NoMemory();
    int good = PyArg_ParseTuple(args, "OOiLO!O!", &before, &known, &tables->members, &rows, &PyList_Type, &list,
                                &PyList_Type, &sparse);
    if (good && (good = view_of(before, &tables->before, "ilq", -1))) tables->held = 1;
    if (good && (good = view_of(known, &tables->known, "?", (Py_ssize_t)tables->members * tables->members)))
        tables->held = 2;
    if (good) {
        size_t items = (size_t)(tables->before.len / tables->before.itemsize);
        while (tables->width * (tables->width + 1) < items) tables->width++; /* (width + 1, width) */
        tables->rows = rows;
        tables->columns = (int)PyList_Size(list);
        tables->column = calloc((size_t)tables->columns + 1, sizeof(PairColumn));
        good = tables->column != NULL;
        if (!good) PyErr_NoMemory();
        if (good && !(good = tables->width * (tables->width + 1) == items))
            PyErr_SetString(PyExc_ValueError, "the running sums of pairs are not of (width + 1, width)");
    }
    for (int c = 0; good && c < tables->columns; c++)
        good = read_pair_column(PyList_GetItem(list, c), tables, &tables->column[c]);
    if (good && read_all_sparse(sparse, tables)) return PyCapsule_New(tables, TABLES, tables_capsule_free);
    tables_free(tables);
    return NULL;
}

/* ---- a filter, read once ---- */

/* How a filter reads its column. `may` and `must` are the rows of each bucket that it may and must keep; `table` is made
 * when the filter is first walked, a table for each position. */
typedef struct {
    PairTables *tables;
    const PairColumn *column;
    PyObject *kept;  /* the tables, which it points into */
    uint64_t number; /* no other filter on these tables has it */
    int64_t values;  /* codes that it allows */
    Py_buffer weights;
    int held, listed, free;
    int positions, position[MOST_DIGITS];
    int64_t radix[MOST_DIGITS];
    int64_t most, least;
    int64_t *may, *must;
    int *touched, touches, *whole, wholes; /* runs of buckets that are touched, and kept whole: begin, end, begin, ... */
    DigitTable *table;
} Reading;

static const char READING[] = "countless.engine._kernel.reading";

static void reading_free(Reading *own) {
    if (own->held) PyBuffer_Release(&own->weights);
    digit_tables_free(own->table, own->positions);
    Py_XDECREF(own->kept);
    free(own->may);
    free(own->touched);
    free(own);
}

static void reading_capsule_free(PyObject *capsule) { reading_free(PyCapsule_GetPointer(capsule, READING)); }

static int add_run(int *runs, int count, int bucket) {
    if (count && runs[2 * count - 1] == bucket) {
        runs[2 * count - 1]++;
        return count;
    }
    runs[2 * count] = bucket;
    runs[2 * count + 1] = bucket + 1;
    return count + 1;
}

/* The rows of the codes [begin, end) that are kept; `values` counts the codes. */
INLINE void read_truths(int64_t begin, int64_t end, const int64_t *rows, const uint8_t *weights, int64_t *kept,
                             int64_t *values) {
    int64_t sum = 0, count = 0;
    for (int64_t code = begin; code < end; code++) {
        int64_t own = weights[code] != 0;
        sum += rows[code] & -own;
        count += own;
    }
    *kept = sum;
    *values += count;
}

/* The rows of these codes that may be kept and those that must be; `parts` counts the codes of which a part is kept. */
INLINE void read_weights(int64_t begin, int64_t end, const int64_t *rows, const double *weights, int64_t *may,
                              int64_t *must, int64_t *values, int64_t *parts) {
    int64_t some = 0, all = 0, count = 0, whole = 0;
    for (int64_t code = begin; code < end; code++) {
        int64_t own = weights[code] > 0, every = weights[code] == 1;
        some += rows[code] & -own;
        all += rows[code] & -every;
        count += own;
        whole += every;
    }
    *may = some;
    *must = all;
    *values += count;
    *parts += count - whole;
}

/* The filter in the buckets of its column. Returns how many codes it allows; `parts` of them partly. */
FAST static int64_t read_buckets(Reading *own, int64_t *parts) {
    const PairColumn *column = own->column;
    const int64_t *begin = column->starts.buf, *rows = column->counts.buf;
    int64_t values = 0;
    for (int b = 0; b < column->buckets; b++) {
        int64_t end = b + 1 < column->buckets ? begin[b + 1] : column->codes, may, must;
        if (own->weights.itemsize == 1) {
            read_truths(begin[b], end, rows, own->weights.buf, &may, &values);
            must = may;
        } else {
            read_weights(begin[b], end, rows, own->weights.buf, &may, &must, &values, parts);
        }
        own->may[b] = may;
        own->must[b] = must;
        own->most += may;
        own->least += must;
        if (may) own->touches = add_run(own->touched, own->touches, b);
        if (may && must == column->rows[b]) own->wholes = add_run(own->whole, own->wholes, b);
    }
    return values;
}

static int reading_make(Reading *own, PyObject *weights, PyObject *positions, PyObject *radices) {
    if (!view_of(weights, &own->weights, "?d", own->column->codes)) return 0;
    own->held = 1;
    own->positions = PyTuple_Check(positions) ? (int)PyTuple_Size(positions) : 0;
    if (own->positions != read_radices(radices, own->column->codes, own->radix)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a filter has other positions than digits");
        own->positions = 0;
        return 0;
    }
    for (int p = 0; p < own->positions; p++) own->position[p] = (int)PyLong_AsLong(PyTuple_GetItem(positions, p));
    if (PyErr_Occurred()) return 0;
    size_t buckets = (size_t)own->column->buckets;
    own->may = malloc(2 * buckets * sizeof(int64_t));
    own->touched = malloc(4 * buckets * sizeof(int));
    if (!own->may || !own->touched) {
        PyErr_NoMemory();
        return 0;
    }
    own->must = own->may + buckets;
    own->whole = own->touched + 2 * buckets;
    return 1;
}

/* reading(tables, column, weights, positions, radices, free, listed) -> (reading, most, values, parts): how many rows
 * the filter keeps at most, and how many codes, of which it keeps some in part. A filter that is free asks nothing. */
static PyObject *pairs_reading(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *weights, *positions, *radices;
    int column;
    Reading *own = calloc(1, sizeof(Reading));
    if (!own) return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "OiOOOpp", &capsule, &column, &weights, &positions, &radices, &own->free, &own->listed) &&
        (own->tables = PyCapsule_GetPointer(capsule, TABLES))) {
        int64_t parts = 0;
        if (column < 0 || column >= own->tables->columns) {
            PyErr_SetString(PyExc_ValueError, "a filter is on no column");
        } else {
            Py_INCREF(own->kept = capsule);
            own->column = &own->tables->column[column];
            if (reading_make(own, weights, positions, radices)) {
                long long values = own->values = read_buckets(own, &parts), most = own->most;
                own->number = ++own->tables->filters;
                PyObject *made = PyCapsule_New(own, READING, reading_capsule_free);
                return made ? Py_BuildValue("NLLL", made, most, values, (long long)parts) : NULL;
            }
        }
    }
    reading_free(own);
    return NULL;
}

/* The tables of a filter's positions, made once, with the interpreter's lock held; NULL if memory is short. */
static const DigitTable *tables_of(Reading *own) {
    if (own->table) return own->table;
    if (own->positions > 1) return own->table = digit_tables_of(&own->weights, own->radix, own->positions, own->listed);
    DigitTable *table = calloc(1, sizeof(DigitTable));
    if (!table || !digit_table_make(table, 1, own->radix[0])) {
        free(table);
        return NULL;
    }
    for (Py_ssize_t v = 0; v < own->column->codes; v++) table->weights[own->radix[0] + 1 + v] = weight_of(&own->weights, v);
    return own->table = table;
}

#endif
