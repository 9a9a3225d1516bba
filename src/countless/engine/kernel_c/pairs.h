/* Filters on exact counts of pairs of columns. Their readable twin is Crossed in ../fusion/pair_filters.py. */
#ifndef COUNTLESS_PAIRS_H
#define COUNTLESS_PAIRS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "digits.h"
#include "views.h"

/* ---- the counts of a table ---- */

typedef struct {
    Py_buffer counts, starts; /* the rows of every code; the first code of every bucket */
    int held, place, first, buckets; /* its place among the members or -1; the number of its first bucket */
    Py_ssize_t codes;
    int64_t *rows; /* of every bucket */
} PairColumn;

typedef struct {
    Py_buffer before, known;
    int held, columns, members;
    size_t width; /* of a row of `before` */
    int64_t rows;
    PairColumn *column;
} PairTables;

static const char TABLES[] = "countless.engine._kernel.pairs";

static void tables_free(PairTables *tables) {
    for (int c = 0; tables->column && c < tables->columns; c++) {
        PairColumn *own = &tables->column[c];
        if (own->held > 0) PyBuffer_Release(&own->counts);
        if (own->held > 1) PyBuffer_Release(&own->starts);
        free(own->rows);
    }
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
               (own->place < 0 || (size_t)(own->first + own->buckets) < tables->width);
    for (int b = 0; good && b < own->buckets; b++) {
        int64_t end = b + 1 < own->buckets ? begin[b + 1] : own->codes;
        good = begin[b] <= end && end <= own->codes;
        for (int64_t code = begin[b]; good && code < end; code++) own->rows[b] += rows[code];
    }
    if (!good) PyErr_SetString(PyExc_ValueError, "a column does not fit the pairs");
    return good;
}

/* pairs(before, known, members, rows, columns) -> tables: see Sums. */
static PyObject *pairs_load(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *before, *known, *list;
    long long rows;
    PairTables *tables = calloc(1, sizeof(PairTables));
    if (!tables) return PyErr_NoMemory();
    int good = PyArg_ParseTuple(args, "OOiLO!", &before, &known, &tables->members, &rows, &PyList_Type, &list);
    if (good && (good = view_of(before, &tables->before, "ilq", -1))) tables->held = 1;
    if (good && (good = view_of(known, &tables->known, "?", (Py_ssize_t)tables->members * tables->members)))
        tables->held = 2;
    if (good) {
        size_t items = (size_t)(tables->before.len / tables->before.itemsize);
        while (tables->width * (tables->width + 1) < items) tables->width++; /* (width, width + 1) */
        tables->width++;
        tables->rows = rows;
        tables->columns = (int)PyList_Size(list);
        tables->column = calloc((size_t)tables->columns + 1, sizeof(PairColumn));
        good = tables->column != NULL;
        if (!good) PyErr_NoMemory();
    }
    for (int c = 0; good && c < tables->columns; c++)
        good = read_pair_column(PyList_GetItem(list, c), tables, &tables->column[c]);
    if (good) return PyCapsule_New(tables, TABLES, tables_capsule_free);
    tables_free(tables);
    return NULL;
}

/* ---- a filter, read once ---- */

/* How a filter reads its column. `may` and `must` are the rows of each bucket that it may and must keep; `table` is made
 * when the filter is first walked, a table for each position. */
typedef struct {
    const PairTables *tables;
    const PairColumn *column;
    PyObject *kept; /* the tables, which it points into */
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
                long long values = read_buckets(own, &parts), most = own->most;
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

/* ---- the filters of a box ---- */

/* What each two filters keep together, at most and at least: (count, count). `shares` has rows for the buckets of each
 * filter that takes part in pairs, those of filter i at from[i], and a column for each filter. */
typedef struct {
    const PairTables *tables;
    int count;
    Reading **filter;
    int64_t *most, *least;
    size_t *from;
    double *shares;
    PyObject *kept; /* the filters */
} Crossed;

static const char CROSSED[] = "countless.engine._kernel.crossed";

static void crossed_free(Crossed *own) {
    Py_XDECREF(own->kept);
    free(own->filter);
    free(own->most);
    free(own->from);
    free(own->shares);
    free(own);
}

static void crossed_capsule_free(PyObject *capsule) { crossed_free(PyCapsule_GetPointer(capsule, CROSSED)); }

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
static void cross_two(const Crossed *crossed, int i, int j, int64_t *most, int64_t *least) {
    const Reading *own = crossed->filter[i], *other = crossed->filter[j];
    const Py_buffer *before = &crossed->tables->before;
    double *share = crossed->shares + crossed->from[i] + j;
    int first = other->column->first;
    *most = *least = 0;
    for (int b = 0; b < own->column->buckets; b++, share += crossed->count) {
        *share = 0;
        if (!own->may[b]) continue;
        size_t row = (size_t)(own->column->first + b) * crossed->tables->width;
        int64_t rows = own->column->rows[b], touched = rows_in(before, row, other->touched, other->touches, first);
        int64_t kept = rows_in(before, row, other->whole, other->wholes, first) - (rows - own->must[b]);
        *most += touched < own->may[b] ? touched : own->may[b];
        *least += kept > 0 ? kept : 0;
        *share = (double)touched / (double)rows;
    }
}

/* Whether the counts of two filters' columns as a pair are known. */
static int are_pair(const Crossed *crossed, int i, int j) {
    int one = crossed->filter[i]->column->place, two = crossed->filter[j]->column->place;
    return one >= 0 && two >= 0 && ((const uint8_t *)crossed->tables->known.buf)[one * crossed->tables->members + two];
}

static void cross_all(Crossed *crossed) {
    int count = crossed->count, inside = 0, empty = 0;
    for (int i = 0; i < count; i++) {
        inside += crossed->filter[i]->column->place >= 0;
        empty |= crossed->filter[i]->most == 0;
        for (int j = 0; j < count; j++) {
            const Reading *one = crossed->filter[i], *two = crossed->filter[j];
            int64_t both = one->least + two->least - crossed->tables->rows;
            crossed->most[i * count + j] = one->most < two->most ? one->most : two->most;
            crossed->least[i * count + j] = i == j ? one->least : both > 0 ? both : 0;
        }
    }
    for (int i = 0; inside > 1 && !empty && i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (!are_pair(crossed, i, j)) continue;
            int64_t high[2], low[2];
            cross_two(crossed, i, j, &high[0], &low[0]);
            cross_two(crossed, j, i, &high[1], &low[1]);
            crossed->most[i * count + j] = crossed->most[j * count + i] = high[0] < high[1] ? high[0] : high[1];
            crossed->least[i * count + j] = crossed->least[j * count + i] = low[0] > low[1] ? low[0] : low[1];
        }
    }
}

/* The rows that all filters keep, at least: those of two of them, but for those that the others may drop. */
static int64_t least_of_all(const Crossed *crossed) {
    int count = crossed->count;
    int64_t dropped = 0, found = 0;
    for (int i = 0; i < count; i++) dropped += crossed->tables->rows - crossed->least[i * count + i];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            int64_t others = dropped - (crossed->tables->rows - crossed->least[i * count + i]);
            if (i != j) others -= crossed->tables->rows - crossed->least[j * count + j];
            int64_t both = crossed->least[i * count + j] - others;
            found = both > found ? both : found;
        }
    }
    return found;
}

/* The readings of a tuple, all of filters on the counts of one table. */
static int read_filters(Crossed *own, PyObject *list) {
    own->count = PyTuple_Check(list) ? (int)PyTuple_Size(list) : 0;
    size_t count = (size_t)own->count, room = 0;
    Py_INCREF(own->kept = list);
    own->filter = calloc(count + 1, sizeof(Reading *));
    own->from = calloc(count + 1, sizeof(size_t));
    own->most = malloc((2 * count * count + 1) * sizeof(int64_t));
    if (!own->filter || !own->from || !own->most) return 0;
    own->least = own->most + count * count;
    for (int i = 0; i < own->count; i++) {
        Reading *filter = own->filter[i] = PyCapsule_GetPointer(PyTuple_GetItem(list, i), READING);
        if (!filter) return 0;
        if (i && filter->tables != own->tables) {
            PyErr_SetString(PyExc_ValueError, "the filters are on several tables");
            return 0;
        }
        own->tables = filter->tables;
        own->from[i] = room;
        room += filter->column->place < 0 ? 0 : (size_t)filter->column->buckets * count;
    }
    own->from[own->count] = room;
    own->shares = malloc((room + 1) * sizeof(double));
    return own->shares && own->count;
}

/* The filter, or the two filters if `several`, of which the fewest rows are known; -1 if there are none. */
static int rarest_counted(const Crossed *own, int several) {
    int found = -1;
    for (int i = 0; i < own->count; i++) {
        for (int j = several ? i + 1 : i; j < (several ? own->count : i + 1); j++) {
            int p = i * own->count + j;
            if (own->least[p] == own->most[p] && (found < 0 || own->most[p] < own->most[found])) found = p;
        }
    }
    return found;
}

/* cross(readings) -> (crossed, least, most, one, two, [(one, two, rows)]): what all keep at least, the two that keep
 * least together, and the one and the two of which the fewest rows are known. */
static PyObject *pairs_cross(PyObject *self, PyObject *list) {
    (void)self;
    Crossed *own = calloc(1, sizeof(Crossed));
    if (!own) return PyErr_NoMemory();
    if (!read_filters(own, list)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "there are no filters, or no memory for them");
        crossed_free(own);
        return NULL;
    }
    cross_all(own);
    int tightest = 0;
    for (int p = 1; p < own->count * own->count; p++)
        if (own->most[p] < own->most[tightest]) tightest = p;
    long long least = least_of_all(own), most = own->most[tightest];
    int one = tightest / own->count, two = tightest % own->count;
    PyObject *counted = PyList_New(0), *made = PyCapsule_New(own, CROSSED, crossed_capsule_free);
    if (!made) crossed_free(own);
    for (int several = 0; made && counted && several < 2; several++) {
        int p = rarest_counted(own, several);
        if (p < 0) continue;
        PyObject *part = Py_BuildValue("iiL", p / own->count, p % own->count, (long long)own->most[p]);
        if (!part || PyList_Append(counted, part) < 0) Py_CLEAR(counted);
        Py_XDECREF(part);
    }
    if (made && counted) return Py_BuildValue("NLLiiN", made, least, most, one, two, counted);
    Py_XDECREF(made);
    Py_XDECREF(counted);
    return NULL;
}

/* crossed(crossed) -> (most, least, shares) as bytes. */
static PyObject *pairs_crossed(PyObject *self, PyObject *capsule) {
    (void)self;
    const Crossed *own = PyCapsule_GetPointer(capsule, CROSSED);
    if (!own) return NULL;
    Py_ssize_t items = (Py_ssize_t)own->count * own->count * (Py_ssize_t)sizeof(int64_t);
    return Py_BuildValue("y#y#y#", (const char *)own->most, items, (const char *)own->least, items,
                         (const char *)own->shares, (Py_ssize_t)(own->from[own->count] * sizeof(double)));
}

#endif
