/* Strings from front coding, as data/front_coding.py defines it. */
#ifndef COUNTLESS_FRONT_CODING_H
#define COUNTLESS_FRONT_CODING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/kernel_c/views.h"

#define REST_END 0xff

/* The list of strings, or NULL with an error. `buffer` has room for the longest string. */
static PyObject *decode_rests(const uint8_t *rests, Py_ssize_t size, const uint8_t *shared, Py_ssize_t count,
                              char *buffer) {
    PyObject *strings = PyList_New(count);
    Py_ssize_t offset = 0, length = 0;
    for (Py_ssize_t i = 0; strings && i < count; i++) {
        const uint8_t *end = offset < size ? memchr(rests + offset, REST_END, size - offset) : NULL;
        PyObject *string = NULL;
        if (!end)
            PyErr_SetString(PyExc_ValueError, "these are not all strings");
        else if (shared[i] > length)
            PyErr_SetString(PyExc_ValueError, "more is shared than there is");
        else {
            Py_ssize_t rest = end - (rests + offset);
            memcpy(buffer + shared[i], rests + offset, rest);
            length = shared[i] + rest;
            offset += rest + 1;
            string = PyUnicode_DecodeUTF8(buffer, length, "strict");
        }
        if (!string || PyList_SetItem(strings, i, string) < 0) Py_CLEAR(strings);
    }
    if (strings && offset != size) {
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
        char *buffer = malloc((size_t)text.len + 256); /* at most 255 bytes are shared */
        strings = buffer ? decode_rests(text.buf, text.len, counts.buf, counts.len, buffer) : PyErr_NoMemory();
        free(buffer);
        PyBuffer_Release(&counts);
    }
    PyBuffer_Release(&text);
    return strings;
}

#endif
