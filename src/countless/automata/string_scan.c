/* countless.automata._string_scan: searches many strings at once. They are UTF-8, one after the other in one buffer.

   Marks are bytes, one for each string. Where a function takes `among`, it reads only the strings marked there. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define ANY_TEXT 0xFE /* of a LIKE pattern; no byte of UTF-8 */
#define ANY_CHARACTER 0xFF
#define LANES 4  /* strings that an automaton reads at the same time: each waits for its own table look-up */
#define STRIDE 16 /* characters between two looks whether a string is decided */
#define ACCEPTED 1
#define DECIDED 2

typedef struct {
    const uint8_t *data;
    const int64_t *start; /* of each string, and the end of the last one */
    Py_ssize_t count;
} Strings;

/* The first place from `at` on, before `end`, where two bytes of the needle are as wanted; `end` if there is none. */
static const uint8_t *candidate(const uint8_t *at, const uint8_t *end, Py_ssize_t one, Py_ssize_t two, uint8_t first,
                                uint8_t second) {
#ifdef __SSE2__
    const __m128i wanted_first = _mm_set1_epi8((char)first), wanted_second = _mm_set1_epi8((char)second);
    for (; end - at >= 16; at += 16) {
        __m128i a = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + one)), wanted_first);
        __m128i b = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + two)), wanted_second);
        int both = _mm_movemask_epi8(_mm_and_si128(a, b));
        if (both) return at + __builtin_ctz((unsigned)both);
    }
#endif
    while (at < end && !(at[one] == first && at[two] == second)) at++;
    return at;
}

static void find(const Strings *strings, const uint8_t *needle, Py_ssize_t size, Py_ssize_t one, Py_ssize_t two,
                 uint8_t *marks) {
    const uint8_t *at = strings->data, *end = strings->data + strings->start[strings->count] - size + 1;
    Py_ssize_t string = 0;
    for (;;) {
        at = at < end ? candidate(at, end, one, two, needle[one], needle[two]) : end;
        if (at >= end) return;
        if (memcmp(at, needle, size)) {
            at++;
            continue;
        }
        while (strings->data + strings->start[string + 1] <= at) string++;
        const uint8_t *stop = strings->data + strings->start[string + 1];
        if (at + size <= stop) {
            marks[string] = 1;
            at = stop;
        } else
            at++; /* it goes on into the next string */
    }
}

static int continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

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

#define RUN(TYPE)                                                                                                    \
    static void run_##TYPE(const Strings *strings, const TYPE *letters, const uint16_t *kind, const int32_t *table,  \
                           Py_ssize_t kinds, const uint8_t *among, uint8_t *marks) {                                 \
        const TYPE *at[LANES];                                                                                       \
        int64_t left[LANES];                                                                                         \
        int32_t state[LANES];                                                                                        \
        Py_ssize_t string[LANES], next = 0;                                                                          \
        int active = 0;                                                                                              \
        for (;;) {                                                                                                   \
            for (; active < LANES && next < strings->count; next++) {                                                \
                if (among && !among[next]) continue;                                                                 \
                at[active] = letters + strings->start[next];                                                         \
                left[active] = strings->start[next + 1] - strings->start[next];                                      \
                state[active] = 0;                                                                                   \
                string[active++] = next;                                                                             \
            }                                                                                                        \
            if (!active) return;                                                                                     \
            int64_t steps = STRIDE;                                                                                  \
            for (int lane = 0; lane < active; lane++)                                                                \
                if (left[lane] < steps) steps = left[lane];                                                          \
            if (active == LANES) {                                                                                   \
                for (int64_t step = 0; step < steps; step++)                                                         \
                    for (int lane = 0; lane < LANES; lane++) state[lane] = table[state[lane] + kind[at[lane][step]]]; \
            } else                                                                                                   \
                for (int lane = 0; lane < active; lane++)                                                            \
                    for (int64_t step = 0; step < steps; step++)                                                     \
                        state[lane] = table[state[lane] + kind[at[lane][step]]];                                     \
            for (int lane = active - 1; lane >= 0; lane--) {                                                         \
                at[lane] += steps;                                                                                   \
                left[lane] -= steps;                                                                                 \
                int32_t flags = table[state[lane] + kinds];                                                          \
                if (left[lane] && !(flags & DECIDED)) continue;                                                      \
                marks[string[lane]] = flags & ACCEPTED;                                                              \
                active--;                                                                                            \
                at[lane] = at[active], left[lane] = left[active];                                                    \
                state[lane] = state[active], string[lane] = string[active];                                          \
            }                                                                                                        \
        }                                                                                                            \
    }

RUN(uint8_t)
RUN(uint16_t)

/* The buffers of one call. */
typedef struct {
    Py_buffer data, starts, pattern, among, marks;
} Call;

static void release(Call *call) {
    Py_buffer *views[] = {&call->data, &call->starts, &call->pattern, &call->among, &call->marks};
    for (int v = 0; v < 5; v++)
        if (views[v]->obj) PyBuffer_Release(views[v]);
}

/* The strings, if the buffers fit together: `width` is that of a letter. */
static int read_strings(const Call *call, Py_ssize_t width, Strings *strings) {
    strings->data = call->data.buf;
    strings->start = call->starts.buf;
    strings->count = call->starts.len / (Py_ssize_t)sizeof(int64_t) - 1;
    int fits = strings->count >= 0 && call->marks.len == strings->count &&
               (!call->among.obj || call->among.len == strings->count) && strings->start[0] == 0 &&
               strings->start[strings->count] * width == call->data.len;
    if (!fits) PyErr_SetString(PyExc_ValueError, "strings, their starts and their marks do not fit together");
    return fits;
}

static int read_among(PyObject *object, Call *call) {
    return object == Py_None || PyObject_GetBuffer(object, &call->among, PyBUF_SIMPLE) == 0;
}

static PyObject *scan_find(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    Py_ssize_t one, two;
    int sound = PyArg_ParseTuple(args, "y*y*y*nnw*", &call.data, &call.starts, &call.pattern, &one, &two, &call.marks) &&
                read_strings(&call, 1, &strings);
    Py_ssize_t size = call.pattern.len;
    if (sound && (one < 0 || two < 0 || one >= size || two >= size)) {
        PyErr_SetString(PyExc_ValueError, "the bytes to look for are not in the pattern");
        sound = 0;
    }
    if (sound && size <= call.data.len) {
        Py_BEGIN_ALLOW_THREADS;
        find(&strings, call.pattern.buf, size, one, two, call.marks.buf);
        Py_END_ALLOW_THREADS;
    }
    release(&call);
    return sound ? Py_NewRef(Py_None) : NULL;
}

static PyObject *scan_like(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    PyObject *some;
    int sound = PyArg_ParseTuple(args, "y*y*y*Ow*", &call.data, &call.starts, &call.pattern, &some, &call.marks) &&
                read_among(some, &call) && read_strings(&call, 1, &strings);
    if (sound) {
        const uint8_t *pattern = call.pattern.buf, *last = pattern + call.pattern.len, *among = call.among.buf;
        uint8_t *marks = call.marks.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t s = 0; s < strings.count; s++)
            marks[s] = (!among || among[s]) && is_like(strings.data + strings.start[s],
                                                       strings.data + strings.start[s + 1], pattern, last);
        Py_END_ALLOW_THREADS;
    }
    release(&call);
    return sound ? Py_NewRef(Py_None) : NULL;
}

static PyObject *scan_run(PyObject *self, PyObject *args) {
    (void)self;
    Call call = {0};
    Strings strings;
    Py_buffer kinds = {0};
    PyObject *some;
    Py_ssize_t columns;
    int sound = PyArg_ParseTuple(args, "y*y*y*y*nOw*", &call.data, &call.starts, &kinds, &call.pattern, &columns, &some,
                                 &call.marks) &&
                read_among(some, &call);
    /* One kind for each letter: letters that have two bytes are more than 256. */
    Py_ssize_t letters = kinds.len / (Py_ssize_t)sizeof(uint16_t), width = letters == 256 ? 1 : 2;
    sound = sound && read_strings(&call, width, &strings);
    const int32_t *table = call.pattern.buf;
    const uint16_t *kind = kinds.buf;
    Py_ssize_t size = call.pattern.len / (Py_ssize_t)sizeof(int32_t), row = columns + 1;
    int whole = sound && columns >= 0 && size >= row && size % row == 0 && (letters == 256 || letters == 65536);
    for (Py_ssize_t letter = 0; whole && letter < letters; letter++) whole = kind[letter] < row;
    for (Py_ssize_t item = 0; whole && item < size; item++)
        whole = item % row == columns || (table[item] >= 0 && table[item] < size && table[item] % row == 0);
    if (sound && !whole) PyErr_SetString(PyExc_ValueError, "the automaton's table is out of order");
    if (sound && whole) {
        Py_BEGIN_ALLOW_THREADS;
        if (width == 1)
            run_uint8_t(&strings, call.data.buf, kind, table, columns, call.among.buf, call.marks.buf);
        else
            run_uint16_t(&strings, call.data.buf, kind, table, columns, call.among.buf, call.marks.buf);
        Py_END_ALLOW_THREADS;
    }
    if (kinds.obj) PyBuffer_Release(&kinds);
    release(&call);
    return sound && whole ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef METHODS[] = {
    {"find", scan_find, METH_VARARGS, "find(data, starts, needle, one, two, marks): mark strings that have the needle"},
    {"like", scan_like, METH_VARARGS, "like(data, starts, pattern, among, marks): mark strings that match"},
    {"run", scan_run, METH_VARARGS,
     "run(letters, starts, kinds, table, columns, among, marks): mark strings that an automaton accepts"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "countless.automata._string_scan", NULL, -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__string_scan(void) { return PyModule_Create(&MODULE); }
