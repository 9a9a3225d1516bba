/* The automaton of a set of codes in digits. Its readable twin is DigitSet.transitions in ../../region.py. */
#ifndef COUNTLESS_DIGITS_H
#define COUNTLESS_DIGITS_H

#include <stdint.h>
#include <stdlib.h>

#include "views.h"

#define MOST_DIGITS 16
#define MOST_PREFIXES ((int64_t)1 << 24)

/* What is known of the prefixes of one length: whether some code under each is allowed, and with which weight; whether
 * every one is; and the state that reads on from it, 0 if nothing more is asked. */
typedef struct {
    double *some;
    uint8_t *every;
    int64_t *state;
} Prefixes;

static int prefixes_make(Prefixes *own, int64_t count) {
    own->some = malloc((size_t)count * sizeof(double));
    own->every = malloc((size_t)count);
    own->state = calloc((size_t)count, sizeof(int64_t));
    return own->some && own->every && own->state;
}

static void prefixes_free(Prefixes *own) {
    free(own->some);
    free(own->every);
    free(own->state);
}

/* Whole codes; those past the last do not exist. */
static void read_codes(const Py_buffer *weights, int64_t count, Prefixes *codes) {
    int64_t known = weights->len / weights->itemsize;
    for (int64_t code = 0; code < count; code++) {
        double weight = code >= known            ? 0.0
                        : weights->itemsize == 1 ? (double)((const uint8_t *)weights->buf)[code]
                                                 : ((const double *)weights->buf)[code];
        codes->some[code] = weight;
        codes->every[code] = code >= known || weight == 1.0;
    }
}

/* The prefixes that are one digit shorter than those `below`. Returns how many have states. */
static int64_t shorten(const Prefixes *below, int64_t count, int64_t radix, Prefixes *own) {
    int64_t asked = 0;
    for (int64_t p = 0; p < count; p++) {
        int some = 0, every = 1;
        for (int64_t v = p * radix; v < (p + 1) * radix; v++) {
            some |= below->some[v] > 0;
            every &= below->every[v];
        }
        own->some[p] = some;
        own->every[p] = (uint8_t)every;
        own->state[p] = count == 1 || (some && !every) ? ++asked : 0; /* there is always a state to start in */
    }
    return asked;
}

/* The tables of one digit: (weights, next), a row for each state and the last column for MASK, as bytes. */
static PyObject *tables_of(const Prefixes *own, int64_t count, int64_t asked, const Prefixes *below, int64_t radix) {
    Py_ssize_t row = radix + 1, items = (asked + 1) * row;
    PyObject *weights = PyBytes_FromStringAndSize(NULL, items * (Py_ssize_t)sizeof(double));
    PyObject *next = PyBytes_FromStringAndSize(NULL, items * (Py_ssize_t)sizeof(int64_t));
    if (!weights || !next) {
        Py_XDECREF(weights);
        Py_XDECREF(next);
        return NULL;
    }
    double *weight = (double *)PyBytes_AsString(weights);
    int64_t *after = (int64_t *)PyBytes_AsString(next);
    memset(weight, 0, (size_t)items * sizeof(double));
    memset(after, 0, (size_t)items * sizeof(int64_t));
    weight[radix] = 1.0;
    for (int64_t p = 0; p < count; p++) {
        if (!own->state[p]) continue;
        memcpy(weight + own->state[p] * row, below->some + p * radix, (size_t)radix * sizeof(double));
        memcpy(after + own->state[p] * row, below->state + p * radix, (size_t)radix * sizeof(int64_t));
    }
    return Py_BuildValue("NN", weights, next);
}

/* digits(weights, radices) -> [(weights, next) of each digit, the leading one first] */
static PyObject *digit_tables(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *array, *list, *found = NULL;
    if (!PyArg_ParseTuple(args, "OO!", &array, &PyTuple_Type, &list)) return NULL;
    int64_t radix[MOST_DIGITS], count = 1;
    int digits = (int)PyTuple_Size(list), good = digits > 0 && digits <= MOST_DIGITS;
    for (int d = 0; good && d < digits; d++) {
        radix[d] = PyLong_AsLongLong(PyTuple_GetItem(list, d));
        good = radix[d] > 0 && radix[d] <= MOST_PREFIXES && (count *= radix[d]) <= MOST_PREFIXES;
    }
    Py_buffer weights;
    if (!good || !view_of(array, &weights, "?d", -1)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the digits are out of range");
        return NULL;
    }
    Prefixes below = {0}, own = {0};
    if (weights.len / weights.itemsize > count)
        PyErr_SetString(PyExc_ValueError, "there are more codes than digits tell apart");
    else if (!prefixes_make(&below, count))
        PyErr_NoMemory();
    else {
        read_codes(&weights, count, &below);
        found = PyList_New(digits);
        for (int d = digits - 1; found && d >= 0; d--) {
            count /= radix[d];
            PyObject *pair = NULL;
            if (prefixes_make(&own, count))
                pair = tables_of(&own, count, shorten(&below, count, radix[d], &own), &below, radix[d]);
            else
                PyErr_NoMemory();
            prefixes_free(&below);
            below = own;
            own = (Prefixes){0};
            if (!pair || PyList_SetItem(found, d, pair) < 0) Py_CLEAR(found);
        }
    }
    prefixes_free(&below);
    PyBuffer_Release(&weights);
    return found;
}

#endif
