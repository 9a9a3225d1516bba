/* Arrays that Python hands over, and the memory they are kept alive by. */
#ifndef COUNTLESS_VIEWS_H
#define COUNTLESS_VIEWS_H

#include <stdlib.h>
#include <string.h>

typedef struct {
    Py_buffer *view;
    int count, room;
} Views;

static void views_free(Views *views) {
    for (int i = 0; i < views->count; i++) PyBuffer_Release(&views->view[i]);
    free(views->view);
}

/* A C-contiguous array of exactly `items` items of one of the given formats. */
static int view_with(PyObject *array, Py_buffer *view, const char *formats, Py_ssize_t items, int flags) {
    if (PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) < 0) return 0;
    if (!view->format || !strchr(formats, view->format[0]) || view->format[1] ||
        (items >= 0 && view->len != items * view->itemsize)) {
        PyErr_Format(PyExc_ValueError, "expected %zd items of format %s, got %zd bytes of %s", items, formats, view->len,
                     view->format ? view->format : "?");
        PyBuffer_Release(view);
        return 0;
    }
    return 1;
}

static int view_of(PyObject *array, Py_buffer *view, const char *formats, Py_ssize_t items) {
    return view_with(array, view, formats, items, 0);
}

/* The same, to be written. */
static int view_of_output(PyObject *array, Py_buffer *view, const char *formats, Py_ssize_t items) {
    return view_with(array, view, formats, items, PyBUF_WRITABLE);
}

/* The floats of `array`, kept alive as long as the views. */
static const float *floats(Views *views, PyObject *array, Py_ssize_t items) {
    if (!array || views->count == views->room) return NULL;
    Py_buffer *view = &views->view[views->count];
    if (!view_of(array, view, "f", items)) return NULL;
    views->count++;
    return view->buf;
}

#endif
