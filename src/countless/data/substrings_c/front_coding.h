/* Strings from front coding, as data/front_coding.py defines it. */
#ifndef COUNTLESS_FRONT_CODING_H
#define COUNTLESS_FRONT_CODING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/kernel_c/views.h"

#define REST_END 0xff

/* The strings as a list, or NULL with a ValueError. `own` has room for the longest string. */
static PyObject *decode_rests(const uint8_t *rests, Py_ssize_t size, const uint8_t *shared, Py_ssize_t count, char *own) {
    PyObject *strings = PyList_New(count);
    Py_ssize_t place = 0, length = 0;
    for (Py_ssize_t i = 0; strings && i < count; i++) {
        const uint8_t *end = place < size ? memchr(rests + place, REST_END, size - place) : NULL;
        PyObject *string = NULL;
        if (!end)
            PyErr_SetString(PyExc_ValueError, "these are not all strings");
        else if (shared[i] > length)
            PyErr_SetString(PyExc_ValueError, "more is shared than there is");
        else {
            Py_ssize_t rest = end - (rests + place);
            memcpy(own + shared[i], rests + place, rest);
            length = shared[i] + rest;
            place += rest + 1;
            string = PyUnicode_DecodeUTF8(own, length, "strict");
        }
        if (!string || PyList_SetItem(strings, i, string) < 0) Py_CLEAR(strings);
    }
    if (strings && place != size) {
        PyErr_SetString(PyExc_ValueError, "these are not all strings");
        Py_CLEAR(strings);
    }
    return strings;
}

static PyObject *front_decode(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *rests, *shared, *strings = NULL;
    Py_buffer text, counts;
    if (!PyArg_ParseTuple(args, "OO", &rests, &shared) || !view_of(rests, &text, "B", -1)) return NULL;
    if (view_of(shared, &counts, "B", -1)) {
        char *own = malloc((size_t)text.len + 256); /* what is shared is at most 255 bytes */
        strings = own ? decode_rests(text.buf, text.len, counts.buf, counts.len, own) : PyErr_NoMemory();
        free(own);
        PyBuffer_Release(&counts);
    }
    PyBuffer_Release(&text);
    return strings;
}

#endif
