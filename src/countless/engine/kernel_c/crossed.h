/* The filters of a box on exact counts of pairs. Their readable twin is Crossed in ../fusion/pair_filters.py. */
#ifndef COUNTLESS_CROSSED_H
#define COUNTLESS_CROSSED_H

#include "pairs.h"
#include "stars.h"

/* What each two filters keep together, at most and at least: (count, count). Of two that are a pair, `touched` has how
 * many rows of each bucket of the one the other touches: filter i has its rows for filter j from touched_rows(i, j) on. */
typedef struct {
    PairTables *tables;
    int count;
    Reading **filter;
    int64_t *most, *least;
    size_t *from; /* where the rows of each filter begin */
    int64_t *touched;
    PyObject *kept; /* the filters */
} Crossed;

static const char CROSSED[] = "countless.engine._kernel.crossed";

static void crossed_free(Crossed *own) {
    Py_XDECREF(own->kept);
    free(own->filter);
    free(own->most);
    free(own->from);
    free(own->touched);
    free(own);
}

static void crossed_capsule_free(PyObject *capsule) { crossed_free(PyCapsule_GetPointer(capsule, CROSSED)); }

static int64_t *touched_rows(const Crossed *crossed, int i, int j) {
    return crossed->touched + crossed->from[i] + (size_t)j * crossed->filter[i]->column->buckets;
}

/* How many rows of each of `buckets` buckets from `bucket` on are in any of the runs of buckets from `first` on. */
FAST static void rows_in_runs(const PairTables *tables, size_t bucket, int buckets, size_t first, const int *runs,
                              int count, int64_t *restrict rows) {
    memset(rows, 0, (size_t)buckets * sizeof(int64_t));
    for (int r = 0; r < count; r++) {
        size_t low = (first + runs[2 * r]) * tables->width + bucket, high = (first + runs[2 * r + 1]) * tables->width + bucket;
        if (tables->before.itemsize == 4) {
            const int32_t *sums = tables->before.buf;
            for (int b = 0; b < buckets; b++) rows[b] += sums[high + b] - sums[low + b];
        } else {
            const int64_t *sums = tables->before.buf;
            for (int b = 0; b < buckets; b++) rows[b] += sums[high + b] - sums[low + b];
        }
    }
}

/* Of the buckets [begin, end) of a filter: no more rows than another filter touches are kept, nor than the own may keep;
 * and of those that the other keeps for sure, all but those that the own may drop. */
FAST static void keep_both(const Reading *own, int begin, int end, const int64_t *touched, const int64_t *sure,
                           int64_t *most, int64_t *least) {
    int64_t high = 0, low = 0;
    for (int b = begin; b < end; b++) {
        int64_t kept = sure[b - begin] - (own->column->rows[b] - own->must[b]);
        high += touched[b - begin] < own->may[b] ? touched[b - begin] : own->may[b];
        low += kept > 0 ? kept : 0;
    }
    *most = high;
    *least = low;
}

/* Whether a filter keeps every bucket whole that it touches. */
static int is_whole(const Reading *own) {
    return own->wholes == own->touches && !memcmp(own->whole, own->touched, 2 * (size_t)own->wholes * sizeof(int));
}

/* What filter i, which touches some bucket, keeps beside filter j. */
static void cross_two(const Crossed *crossed, int i, int j, int64_t *most, int64_t *least) {
    const Reading *own = crossed->filter[i], *other = crossed->filter[j];
    int begin = own->touched[0], end = own->touched[2 * own->touches - 1];
    size_t bucket = (size_t)(own->column->first + begin), first = (size_t)other->column->first;
    int64_t sure[own->column->buckets], *touched = touched_rows(crossed, i, j) + begin;
    rows_in_runs(crossed->tables, bucket, end - begin, first, other->touched, other->touches, touched);
    if (!is_whole(other)) rows_in_runs(crossed->tables, bucket, end - begin, first, other->whole, other->wholes, sure);
    keep_both(own, begin, end, touched, is_whole(other) ? touched : sure, most, least);
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
    own->touched = malloc((room + 1) * sizeof(int64_t));
    return own->touched && own->count;
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

/* cross(readings) -> (crossed, least, most, one, two, [(one, two, rows)], stars): what all keep at least, the two that
 * keep least together, and the one and the two of which the fewest rows are known; see stars.h. */
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
    PyObject *counted = PyList_New(0), *stars = stars_of(own->tables, own->filter, own->count);
    PyObject *made = PyCapsule_New(own, CROSSED, crossed_capsule_free);
    if (!made) crossed_free(own);
    for (int several = 0; made && counted && several < 2; several++) {
        int p = rarest_counted(own, several);
        if (p < 0) continue;
        PyObject *part = Py_BuildValue("iiL", p / own->count, p % own->count, (long long)own->most[p]);
        if (!part || PyList_Append(counted, part) < 0) Py_CLEAR(counted);
        Py_XDECREF(part);
    }
    if (made && counted && stars) return Py_BuildValue("NLLiiNN", made, least, most, one, two, counted, stars);
    Py_XDECREF(made);
    Py_XDECREF(stars);
    Py_XDECREF(counted);
    return NULL;
}

/* The share of the rows of each bucket of filter i that filter j touches, every `stride` numbers; 0 where i keeps none. */
static void shares_of(const Crossed *crossed, int i, int j, double *shares, int stride) {
    const Reading *own = crossed->filter[i];
    const int64_t *touched = touched_rows(crossed, i, j);
    for (int b = 0; b < own->column->buckets; b++)
        shares[(size_t)b * stride] = own->may[b] ? (double)touched[b] / (double)own->column->rows[b] : 0.0;
}

/* crossed(crossed) -> (most, least, shares) as bytes. */
static PyObject *pairs_crossed(PyObject *self, PyObject *capsule) {
    (void)self;
    const Crossed *own = PyCapsule_GetPointer(capsule, CROSSED);
    if (!own) return NULL;
    int count = own->count, is_empty = 0;
    double *shares = calloc(own->from[count] + 1, sizeof(double));
    if (!shares) return PyErr_NoMemory();
    for (int i = 0; i < count; i++) is_empty |= own->filter[i]->most == 0;
    for (int i = 0; !is_empty && i < count; i++)
        for (int j = 0; j < count; j++)
            if (i != j && are_pair(own, i, j)) shares_of(own, i, j, shares + own->from[i] + j, count);
    Py_ssize_t items = (Py_ssize_t)count * count * (Py_ssize_t)sizeof(int64_t);
    PyObject *found = Py_BuildValue("y#y#y#", (const char *)own->most, items, (const char *)own->least, items,
                                    (const char *)shares, (Py_ssize_t)(own->from[count] * sizeof(double)));
    free(shares);
    return found;
}

#endif
