/* The automaton of a set of codes in digits. Its readable twin is DigitSet.transitions in ../../region.py. */
#ifndef COUNTLESS_DIGITS_H
#define COUNTLESS_DIGITS_H

#include <stdint.h>
#include <stdlib.h>

#include "views.h"

#define MOST_DIGITS 16
#define MOST_PREFIXES ((int64_t)1 << 24)

/* How one digit is read: a row for each state, and the last column for MASK. Both tables are one piece of memory. */
typedef struct {
    int64_t states;
    double *weights;
    int64_t *next;
} DigitTable;

static void digit_tables_free(DigitTable *table, int digits) {
    for (int d = 0; table && d < digits; d++) free(table[d].weights);
    free(table);
}

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

/* The weight of a code, of truth values or of doubles. */
static double weight_of(const Py_buffer *weights, Py_ssize_t code) {
    return weights->itemsize == 1 ? (double)((const uint8_t *)weights->buf)[code] : ((const double *)weights->buf)[code];
}

/* Whole codes; those past the last do not exist. */
static void read_codes(const Py_buffer *weights, int64_t count, int listed, Prefixes *codes) {
    int64_t known = weights->len / weights->itemsize;
    for (int64_t code = 0; code < count; code++) {
        double weight = code >= known ? 0.0 : weight_of(weights, code);
        codes->some[code] = weight;
        codes->every[code] = !listed && (code >= known || weight == 1.0);
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

/* Room for a table of so many states besides the one that reads MASK. */
static int digit_table_make(DigitTable *table, int64_t asked, int64_t radix) {
    size_t row = (size_t)radix + 1, items = (size_t)(asked + 1) * row;
    table->states = asked + 1;
    table->weights = calloc(items, sizeof(double) + sizeof(int64_t));
    table->next = (int64_t *)(table->weights + items);
    if (table->weights) table->weights[radix] = 1.0;
    return table->weights != NULL;
}

static int fill_digit(const Prefixes *own, int64_t count, int64_t asked, const Prefixes *below, int64_t radix,
                      DigitTable *table) {
    if (!digit_table_make(table, asked, radix)) return 0;
    for (int64_t p = 0; p < count; p++) {
        if (!own->state[p]) continue;
        memcpy(table->weights + own->state[p] * (radix + 1), below->some + p * radix, (size_t)radix * sizeof(double));
        memcpy(table->next + own->state[p] * (radix + 1), below->state + p * radix, (size_t)radix * sizeof(int64_t));
    }
    return 1;
}

/* The tables of every digit, the leading one first; NULL if memory is short. */
static DigitTable *digit_tables_of(const Py_buffer *weights, const int64_t *radix, int digits, int listed) {
    int64_t count = 1;
    for (int d = 0; d < digits; d++) count *= radix[d];
    DigitTable *table = calloc((size_t)digits, sizeof(DigitTable));
    Prefixes below = {0}, own = {0};
    int good = table && prefixes_make(&below, count);
    if (good) read_codes(weights, count, listed, &below);
    for (int d = digits - 1; good && d >= 0; d--) {
        count /= radix[d];
        good = prefixes_make(&own, count) &&
               fill_digit(&own, count, shorten(&below, count, radix[d], &own), &below, radix[d], &table[d]);
        prefixes_free(&below);
        below = own;
        own = (Prefixes){0};
    }
    prefixes_free(&below);
    if (good) return table;
    digit_tables_free(table, digits);
    return NULL;
}

/* How many symbols each digit has, which together tell at least `codes` codes apart. Returns how many digits, or 0. */
static int read_radices(PyObject *list, Py_ssize_t codes, int64_t *radix) {
    int64_t count = 1;
    int digits = PyTuple_Check(list) ? (int)PyTuple_Size(list) : 0, good = digits > 0 && digits <= MOST_DIGITS;
    for (int d = 0; good && d < digits; d++) {
        radix[d] = PyLong_AsLongLong(PyTuple_GetItem(list, d));
        good = radix[d] > 0 && radix[d] <= MOST_PREFIXES && (count *= radix[d]) <= MOST_PREFIXES;
    }
    if (good && codes <= count) return digits;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the digits are out of range, or tell too few codes apart");
    return 0;
}

/* digits(weights, radices, listed) -> [(weights, next) of each digit, as bytes, the leading one first] */
static PyObject *digit_tables(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *array, *list, *found = NULL;
    int64_t radix[MOST_DIGITS];
    int listed;
    Py_buffer weights;
    if (!PyArg_ParseTuple(args, "OOp", &array, &list, &listed) || !view_of(array, &weights, "?d", -1)) return NULL;
    int digits = read_radices(list, weights.len / weights.itemsize, radix);
    DigitTable *table = digits ? digit_tables_of(&weights, radix, digits, listed) : NULL;
    if (digits && !table) PyErr_NoMemory();
    if (table) found = PyList_New(0);
    for (int d = 0; found && d < digits; d++) {
        Py_ssize_t bytes = (Py_ssize_t)(table[d].states * (radix[d] + 1) * sizeof(double));
        PyObject *pair = Py_BuildValue("y#y#", (const char *)table[d].weights, bytes, (const char *)table[d].next, bytes);
        if (!pair || PyList_Append(found, pair) < 0) Py_CLEAR(found);
        Py_XDECREF(pair);
    }
    digit_tables_free(table, digits);
    PyBuffer_Release(&weights);
    return found;
}

#endif
