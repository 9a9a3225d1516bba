/* countless.automata._string_scan: searches many strings at once. They are UTF-8, one after the other in one buffer.

   Marks are bytes, one for each string. Where a function takes `among`, it reads only the strings marked there. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdlib.h>

#include "front_coded.h"

#define ANY_TEXT 0xFE /* of a LIKE pattern; no byte of UTF-8 */
#define ANY_CHARACTER 0xFF
#define MOST_BUFFERS 8

/* The end of `piece` at a place of a string, or NULL if it is not there. */
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

/* The begin of `piece` at the end of a string, or NULL if it is not there. */
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

/* Whether a string matches: its begin and its end are compared, and pieces between them are taken where they come first. */
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

/* An array of `items` items of so many bytes, to be written or not; NULL with an error if it is none. */
static void *array_of(Call *call, PyObject *object, Py_ssize_t items, Py_ssize_t width, int flags) {
    Py_buffer *view = &call->view[call->count];
    if (PyObject_GetBuffer(object, view, flags)) return NULL;
    call->count++;
    if (view->len == items * width) return view->buf;
    PyErr_SetString(PyExc_ValueError, "strings, their places and their marks do not fit together");
    return NULL;
}

static int read_strings(Call *call, PyObject *data, PyObject *starts, Strings *strings) {
    Py_buffer *bytes = &call->view[0], *places = &call->view[1];
    if (PyObject_GetBuffer(data, bytes, PyBUF_SIMPLE)) return 0;
    call->count++;
    if (PyObject_GetBuffer(starts, places, PyBUF_SIMPLE)) return 0;
    call->count++;
    strings->data = bytes->buf;
    strings->start = places->buf;
    strings->count = places->len / (Py_ssize_t)sizeof(int64_t) - 1;
    if (strings->count >= 0 && strings->start[0] == 0 && strings->start[strings->count] == bytes->len) return 1;
    PyErr_SetString(PyExc_ValueError, "strings and their places do not fit together");
    return 0;
}

/* `among`, of which None is all. */
static int read_among(Call *call, PyObject *object, Py_ssize_t count, const uint8_t **among) {
    *among = NULL;
    return object == Py_None || (*among = array_of(call, object, count, 1, PyBUF_SIMPLE)) != NULL;
}

static PyObject *done(Call *call, int sound) {
    release(call);
    return sound ? Py_NewRef(Py_None) : NULL;
}

static PyObject *scan_survey(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *heads, *tails, *shared, *points;
    uint64_t *head, *tail;
    uint8_t *same, *noted;
    int sorted = 0;
    int sound = PyArg_ParseTuple(args, "OOOOOO", &data, &starts, &heads, &tails, &shared, &points) &&
                read_strings(&call, data, starts, &strings) &&
                (head = array_of(&call, heads, strings.count, sizeof(uint64_t), PyBUF_WRITABLE)) &&
                (tail = array_of(&call, tails, strings.count, sizeof(uint64_t), PyBUF_WRITABLE)) &&
                (same = array_of(&call, shared, strings.count, 1, PyBUF_WRITABLE)) &&
                (noted = array_of(&call, points, POINTS, 1, PyBUF_WRITABLE));
    if (sound) {
        Py_BEGIN_ALLOW_THREADS;
        sorted = survey(&strings, head, tail, same, noted);
        Py_END_ALLOW_THREADS;
    }
    release(&call);
    return sound ? PyBool_FromLong(sorted) : NULL;
}

static PyObject *scan_cut(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *places, *rests;
    const int64_t *rest;
    uint8_t *out;
    int sound = PyArg_ParseTuple(args, "OOOO", &data, &starts, &places, &rests) &&
                read_strings(&call, data, starts, &strings) &&
                (rest = array_of(&call, places, strings.count + 1, sizeof(int64_t), PyBUF_SIMPLE)) &&
                (out = array_of(&call, rests, rest[strings.count] + PIECE, 1, PyBUF_WRITABLE));
    for (Py_ssize_t s = 0; sound && s < strings.count; s++) {
        int64_t size = rest[s + 1] - rest[s];
        sound = size >= 0 && size <= strings.start[s + 1] - strings.start[s];
        if (sound) memcpy(out + rest[s], strings.data + strings.start[s + 1] - size, size);
        else PyErr_SetString(PyExc_ValueError, "a rest is longer than its string");
    }
    return done(&call, sound);
}

static PyObject *scan_find(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    Fronts fronts;
    PyObject *data, *starts, *rests, *places, *owners, *shared, *out;
    const char *needle;
    Py_ssize_t size, one, two, first, last;
    uint8_t *marks;
    int sound = PyArg_ParseTuple(args, "OOOOOOy#nnnnO", &data, &starts, &rests, &places, &owners, &shared, &needle, &size,
                                 &one, &two, &first, &last, &out) &&
                read_strings(&call, data, starts, &strings) &&
                (fronts.rest = array_of(&call, places, strings.count + 1, sizeof(int64_t), PyBUF_SIMPLE)) &&
                (fronts.rests = array_of(&call, rests, fronts.rest[strings.count] + PIECE, 1, PyBUF_SIMPLE)) &&
                (fronts.owner = array_of(&call, owners, fronts.rest[strings.count] / STEP + 1, sizeof(int32_t),
                                         PyBUF_SIMPLE)) &&
                (fronts.shared = array_of(&call, shared, strings.count, 1, PyBUF_SIMPLE)) &&
                (marks = array_of(&call, out, strings.count, 1, PyBUF_WRITABLE));
    Py_ssize_t length = size < PIECE ? size : PIECE;
    if (sound && !(0 <= one && one < length && 0 <= two && two < length && 0 <= first && first <= last && last <= strings.count)) {
        PyErr_SetString(PyExc_ValueError, "the bytes to look for are not in the needle, or the strings not in the table");
        sound = 0;
    }
    if (sound) {
        Py_BEGIN_ALLOW_THREADS;
        find(&strings, &fronts, (const uint8_t *)needle, size, one, two, first, last, marks);
        Py_END_ALLOW_THREADS;
    }
    return done(&call, sound);
}

static PyObject *scan_like(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *data, *starts, *some, *out;
    const char *pattern;
    Py_ssize_t size;
    const uint8_t *among;
    uint8_t *marks;
    int sound = PyArg_ParseTuple(args, "OOy#OO", &data, &starts, &pattern, &size, &some, &out) &&
                read_strings(&call, data, starts, &strings) && read_among(&call, some, strings.count, &among) &&
                (marks = array_of(&call, out, strings.count, 1, PyBUF_WRITABLE));
    if (sound) {
        const uint8_t *wanted = (const uint8_t *)pattern;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t s = 0; s < strings.count; s++) {
            if (among && !among[s]) {
                const uint8_t *next = memchr(among + s, 1, strings.count - s);
                if (!next) break;
                s = next - among;
            }
            marks[s] = is_like(strings.data + strings.start[s], strings.data + strings.start[s + 1], wanted, wanted + size);
        }
        Py_END_ALLOW_THREADS;
    }
    return done(&call, sound);
}

/* The most bytes of a string. */
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
    PyObject *data, *starts, *own, *kinds, *rows, *some, *out;
    const uint8_t *shared, *among;
    const uint16_t *kind;
    const int32_t *table;
    Py_ssize_t columns, states;
    uint8_t *marks;
    int32_t *after = NULL;
    int sound = PyArg_ParseTuple(args, "OOOOOnnOO", &data, &starts, &own, &kinds, &rows, &states, &columns, &some, &out) &&
                read_strings(&call, data, starts, &strings) &&
                (shared = array_of(&call, own, strings.count, 1, PyBUF_SIMPLE)) &&
                (kind = array_of(&call, kinds, 256, sizeof(uint16_t), PyBUF_SIMPLE)) &&
                (table = array_of(&call, rows, states * (columns + 1), sizeof(int32_t), PyBUF_SIMPLE)) &&
                read_among(&call, some, strings.count, &among) &&
                (marks = array_of(&call, out, strings.count, 1, PyBUF_WRITABLE));
    Py_ssize_t row = columns + 1, size = states * row;
    int whole = sound && columns > 0 && states > 0;
    for (Py_ssize_t byte = 0; whole && byte < 256; byte++) whole = kind[byte] < columns;
    for (Py_ssize_t item = 0; whole && item < size; item++)
        whole = item % row == columns || (table[item] >= 0 && table[item] < size && table[item] % row == 0);
    if (sound && !whole) PyErr_SetString(PyExc_ValueError, "the automaton's table is out of order");
    if (whole) {
        int64_t room = longest(&strings) + 1;
        after = malloc(LANES * room * sizeof(int32_t));
        if (!after) PyErr_NoMemory();
        else {
            Py_BEGIN_ALLOW_THREADS;
            run(&strings, shared, kind, table, columns, among, after, room, marks);
            Py_END_ALLOW_THREADS;
        }
        free(after);
    }
    return done(&call, after != NULL);
}

static PyMethodDef METHODS[] = {
    {"survey", scan_survey, METH_VARARGS,
     "survey(data, starts, heads, tails, shared, points): what searches need; whether the strings are sorted"},
    {"cut", scan_cut, METH_VARARGS, "cut(data, starts, places, rests): copy the end of each string"},
    {"find", scan_find, METH_VARARGS,
     "find(data, starts, rests, places, owners, shared, needle, one, two, first, last, marks): mark those with the needle"},
    {"like", scan_like, METH_VARARGS, "like(data, starts, pattern, among, marks): mark strings that match"},
    {"run", scan_run, METH_VARARGS,
     "run(data, starts, shared, kinds, table, states, columns, among, marks): mark those that an automaton accepts"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "countless.automata._string_scan", NULL, -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__string_scan(void) { return PyModule_Create(&MODULE); }
