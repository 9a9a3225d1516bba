/* countless.automata._string_scan: searches many strings at once. They are UTF-8, one after the other in one buffer.

   `matches` has a byte for each string. A function that takes `candidates` reads only the strings marked there. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdlib.h>

#include "front_coded.h"

#define ANY_TEXT 0xFE /* in a LIKE pattern; no byte of UTF-8 */
#define ANY_CHARACTER 0xFF
#define MOST_BUFFERS 8

/* The end of `piece` if it begins at a position of a string, else NULL. */
static const uint8_t *matched(const uint8_t *at, const uint8_t *end, const uint8_t *piece, const uint8_t *last) {
    for (; piece < last; piece++) {
        if (at == end) return NULL;
        if (*piece != ANY_CHARACTER) {
            if (*at++ != *piece) return NULL;
        } else
            for (at++; at < end && continues(*at);) at++;
    }
    return at;
}

/* The beginning of `piece` if it ends at the end of a string, else NULL. */
static const uint8_t *matched_last(const uint8_t *begin, const uint8_t *at, const uint8_t *piece, const uint8_t *last) {
    while (last-- > piece) {
        if (at == begin) return NULL;
        if (*last != ANY_CHARACTER) {
            if (*--at != *last) return NULL;
        } else
            for (at--; at > begin && continues(*at);) at--;
    }
    return at;
}

/* Whether a string matches: its two ends are compared, and each piece between them is matched where it first occurs. */
static int is_like(const uint8_t *at, const uint8_t *end, const uint8_t *pattern, const uint8_t *last) {
    const uint8_t *piece = memchr(pattern, ANY_TEXT, last - pattern), *tail = last;
    if (!piece) return matched(at, end, pattern, last) == end;
    if (!(at = matched(at, end, pattern, piece))) return 0;
    while (tail[-1] != ANY_TEXT) tail--;
    if (!(end = matched_last(at, end, tail, last))) return 0;
    while (++piece < tail) {
        const uint8_t *next = memchr(piece, ANY_TEXT, tail - piece), *after = at;
        for (; piece < next; at++) {
            if (at > end) return 0;
            if (*piece != ANY_CHARACTER && !(at = memchr(at, *piece, end - at))) return 0;
            if (*piece == ANY_CHARACTER && at < end && continues(*at)) continue;
            if ((after = matched(at, end, piece, next))) break;
        }
        at = after;
        piece = next;
    }
    return 1;
}

/* The buffers of one call. */
typedef struct {
    Py_buffer view[MOST_BUFFERS];
    int count;
} Call;

static void release(Call *call) {
    for (int v = 0; v < call->count; v++) PyBuffer_Release(&call->view[v]);
}

/* A buffer of `items` items of `width` bytes; NULL with an error if it has another size. */
static void *array_of(Call *call, PyObject *object, Py_ssize_t items, Py_ssize_t width, int flags) {
    Py_buffer *view = &call->view[call->count];
    if (PyObject_GetBuffer(object, view, flags)) return NULL;
    call->count++;
    if (view->len == items * width) return view->buf;
    PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not fit the strings");
    return NULL;
}

static int read_strings(Call *call, PyObject *data, PyObject *starts, Strings *strings) {
    Py_buffer *bytes = &call->view[0], *offsets = &call->view[1];
    if (PyObject_GetBuffer(data, bytes, PyBUF_SIMPLE)) return 0;
    call->count++;
    if (PyObject_GetBuffer(starts, offsets, PyBUF_SIMPLE)) return 0;
    call->count++;
    strings->data = bytes->buf;
    strings->start = offsets->buf;
    strings->count = offsets->len / (Py_ssize_t)sizeof(int64_t) - 1;
    if (strings->count >= 0 && strings->start[0] == 0 && strings->start[strings->count] == bytes->len) return 1;
    PyErr_SetString(PyExc_ValueError, "strings and their offsets do not fit together");
    return 0;
}

/* Reads `candidates`; None is all strings. */
static int read_candidates(Call *call, PyObject *object, Py_ssize_t count, const uint8_t **candidates) {
    *candidates = NULL;
    return object == Py_None || (*candidates = array_of(call, object, count, 1, PyBUF_SIMPLE)) != NULL;
}

static PyObject *done(Call *call, int ok) {
    release(call);
    return ok ? Py_NewRef(Py_None) : NULL;
}

static PyObject *scan_survey(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *heads, *tails, *shared, *points;
    uint64_t *head, *tail;
    uint8_t *shared_sizes, *is_used;
    int sorted = 0;
    int ok = PyArg_ParseTuple(args, "OOOOOO", &data, &starts, &heads, &tails, &shared, &points) &&
             read_strings(&call, data, starts, &strings) &&
             (head = array_of(&call, heads, strings.count, sizeof(uint64_t), PyBUF_WRITABLE)) &&
             (tail = array_of(&call, tails, strings.count, sizeof(uint64_t), PyBUF_WRITABLE)) &&
             (shared_sizes = array_of(&call, shared, strings.count, 1, PyBUF_WRITABLE)) &&
             (is_used = array_of(&call, points, POINTS, 1, PyBUF_WRITABLE));
    if (ok) {
        Py_BEGIN_ALLOW_THREADS;
        sorted = survey(&strings, head, tail, shared_sizes, is_used);
        Py_END_ALLOW_THREADS;
    }
    release(&call);
    return ok ? PyBool_FromLong(sorted) : NULL;
}

static PyObject *scan_cut(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *rest_starts, *rests;
    const int64_t *rest;
    uint8_t *out;
    int ok = PyArg_ParseTuple(args, "OOOO", &data, &starts, &rest_starts, &rests) &&
             read_strings(&call, data, starts, &strings) &&
             (rest = array_of(&call, rest_starts, strings.count + 1, sizeof(int64_t), PyBUF_SIMPLE)) &&
             (out = array_of(&call, rests, rest[strings.count] + PIECE, 1, PyBUF_WRITABLE));
    for (Py_ssize_t s = 0; ok && s < strings.count; s++) {
        int64_t size = rest[s + 1] - rest[s];
        ok = size >= 0 && size <= strings.start[s + 1] - strings.start[s];
        if (ok) memcpy(out + rest[s], strings.data + strings.start[s + 1] - size, size);
        else PyErr_SetString(PyExc_ValueError, "a front-coded string is longer than its string");
    }
    return done(&call, ok);
}

static PyObject *scan_find(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    Fronts fronts;
    PyObject *data, *starts, *rests, *rest_starts, *owners, *shared, *match_object;
    const char *needle;
    Py_ssize_t size, first_offset, second_offset, first, last;
    uint8_t *matches;
    int ok = PyArg_ParseTuple(args, "OOOOOOy#nnnnO", &data, &starts, &rests, &rest_starts, &owners, &shared, &needle, &size,
                              &first_offset, &second_offset, &first, &last, &match_object) &&
             read_strings(&call, data, starts, &strings) &&
             (fronts.rest = array_of(&call, rest_starts, strings.count + 1, sizeof(int64_t), PyBUF_SIMPLE)) &&
             (fronts.rests = array_of(&call, rests, fronts.rest[strings.count] + PIECE, 1, PyBUF_SIMPLE)) &&
             (fronts.owner = array_of(&call, owners, fronts.rest[strings.count] / STEP + 1, sizeof(int32_t),
                                         PyBUF_SIMPLE)) &&
             (fronts.shared = array_of(&call, shared, strings.count, 1, PyBUF_SIMPLE)) &&
             (matches = array_of(&call, match_object, strings.count, 1, PyBUF_WRITABLE));
    Py_ssize_t length = size < PIECE ? size : PIECE;
    int in_needle = 0 <= first_offset && first_offset < length && 0 <= second_offset && second_offset < length;
    if (ok && !(in_needle && 0 <= first && first <= last && last <= strings.count)) {
        PyErr_SetString(PyExc_ValueError, "offsets outside the needle, or strings outside the table");
        ok = 0;
    }
    if (ok) {
        Py_BEGIN_ALLOW_THREADS;
        find(&strings, &fronts, (const uint8_t *)needle, size, first_offset, second_offset, first, last, matches);
        Py_END_ALLOW_THREADS;
    }
    return done(&call, ok);
}

static PyObject *scan_like(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *candidate_object, *match_object;
    const char *pattern;
    Py_ssize_t size;
    const uint8_t *candidates;
    uint8_t *matches;
    int ok = PyArg_ParseTuple(args, "OOy#OO", &data, &starts, &pattern, &size, &candidate_object, &match_object) &&
             read_strings(&call, data, starts, &strings) &&
             read_candidates(&call, candidate_object, strings.count, &candidates) &&
             (matches = array_of(&call, match_object, strings.count, 1, PyBUF_WRITABLE));
    if (ok) {
        const uint8_t *bytes = (const uint8_t *)pattern;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t s = 0; s < strings.count; s++) {
            if (candidates && !candidates[s]) {
                const uint8_t *next = memchr(candidates + s, 1, strings.count - s);
                if (!next) break;
                s = next - candidates;
            }
            matches[s] = is_like(strings.data + strings.start[s], strings.data + strings.start[s + 1], bytes, bytes + size);
        }
        Py_END_ALLOW_THREADS;
    }
    return done(&call, ok);
}

/* The length in bytes of the longest string. */
static int64_t longest(const Strings *strings) {
    int64_t most = 0;
    for (Py_ssize_t s = 0; s < strings->count; s++)
        if (strings->start[s + 1] - strings->start[s] > most) most = strings->start[s + 1] - strings->start[s];
    return most;
}

static PyObject *scan_run(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *shared_object, *kinds, *rows, *candidate_object, *match_object;
    const uint8_t *shared, *candidates;
    const uint16_t *kind;
    const int32_t *table;
    Py_ssize_t columns, states;
    uint8_t *matches;
    int32_t *state_buffer = NULL;
    int ok = PyArg_ParseTuple(args, "OOOOOnnOO", &data, &starts, &shared_object, &kinds, &rows, &states, &columns,
                              &candidate_object, &match_object) &&
             read_strings(&call, data, starts, &strings) &&
             (shared = array_of(&call, shared_object, strings.count, 1, PyBUF_SIMPLE)) &&
             (kind = array_of(&call, kinds, 256, sizeof(uint16_t), PyBUF_SIMPLE)) &&
             (table = array_of(&call, rows, states * (columns + 1), sizeof(int32_t), PyBUF_SIMPLE)) &&
             read_candidates(&call, candidate_object, strings.count, &candidates) &&
             (matches = array_of(&call, match_object, strings.count, 1, PyBUF_WRITABLE));
    Py_ssize_t row = columns + 1, size = states * row;
    int is_valid = ok && columns > 0 && states > 0;
    for (Py_ssize_t byte = 0; is_valid && byte < 256; byte++) is_valid = kind[byte] < columns;
    for (Py_ssize_t item = 0; is_valid && item < size; item++)
        is_valid = item % row == columns || (table[item] >= 0 && table[item] < size && table[item] % row == 0);
    if (ok && !is_valid) PyErr_SetString(PyExc_ValueError, "the automaton's table is out of order");
    if (is_valid) {
        int64_t room = longest(&strings) + 1;
        state_buffer = malloc(LANES * room * sizeof(int32_t));
        if (!state_buffer) PyErr_NoMemory();
        else {
            Py_BEGIN_ALLOW_THREADS;
            run(&strings, shared, kind, table, columns, candidates, state_buffer, room, matches);
            Py_END_ALLOW_THREADS;
        }
        free(state_buffer);
    }
    return done(&call, state_buffer != NULL);
}

static PyMethodDef METHODS[] = {
    {"survey", scan_survey, METH_VARARGS,
     "survey(data, starts, heads, tails, shared, points): ends and shared prefixes; whether the strings are sorted"},
    {"cut", scan_cut, METH_VARARGS, "cut(data, starts, rest_starts, rests): front-code the strings"},
    {"find", scan_find, METH_VARARGS,
     "find(data, starts, rests, rest_starts, owners, shared, needle, first_offset, second_offset, first, last, matches): "
     "mark the strings with the needle"},
    {"like", scan_like, METH_VARARGS, "like(data, starts, pattern, candidates, matches): mark the strings that match"},
    {"run", scan_run, METH_VARARGS,
     "run(data, starts, shared, kinds, table, states, columns, candidates, matches): mark strings that are accepted"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "countless.automata._string_scan", NULL, -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__string_scan(void) { return PyModule_Create(&MODULE); }
