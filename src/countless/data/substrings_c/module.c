/* Frequent substrings of rows of text (grow.h, occur.h, longest.h), and strings of a model file (front_coding.h). */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/kernel_c/views.h"
#include "front_coding.h"
#include "grow.h"
#include "longest.h"
#include "occur.h"

#define CAPSULE "countless.substrings"

typedef struct {
    Automaton automaton;
    Py_buffer view[2];
    int held;
} Handle;

/* Rows of text: the symbols, the start of each row, and the end of the last. `held` buffers are to be released. */
typedef struct {
    Py_buffer text, starts;
    int held;
    int32_t rows;
} Rows;

static void rows_free(Rows *rows) {
    if (rows->held > 0) PyBuffer_Release(&rows->text);
    if (rows->held > 1) PyBuffer_Release(&rows->starts);
}

/* Reads and checks rows; returns 0 with an error. The caller frees them in any case. */
static int read_rows(PyObject *text, PyObject *starts, Rows *rows) {
    *rows = (Rows){0};
    if (!view_of(text, &rows->text, "H", -1)) return 0;
    rows->held = 1;
    if (!view_of(starts, &rows->starts, "I", -1)) return 0;
    rows->held = 2;
    int64_t length = rows->text.len / 2, count = rows->starts.len / 4;
    const uint16_t *symbols = rows->text.buf;
    const uint32_t *row_starts = rows->starts.buf;
    int is_valid = count > 0 && length < UINT32_MAX && row_starts[0] == 0 && row_starts[count - 1] == length;
    for (int64_t i = 1; is_valid && i < count; i++)
        is_valid = row_starts[i - 1] < row_starts[i] && row_starts[i] <= length && symbols[row_starts[i] - 1] == BREAK;
    if (!is_valid)
        PyErr_SetString(PyExc_ValueError, "every row of text ends with a break, and begins where one has ended");
    rows->rows = (int32_t)(count - 1);
    return is_valid;
}

static PyObject *substrings_grow(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *text, *starts, *result = NULL;
    int threshold, deepest, most;
    if (!PyArg_ParseTuple(args, "OOiii", &text, &starts, &threshold, &deepest, &most)) return NULL;
    if (threshold < 1 || deepest < 1 || most < 0) {
        PyErr_SetString(PyExc_ValueError, "the threshold and the greatest length are at least 1");
        return NULL;
    }
    Rows rows;
    Trie trie = {0};
    if (read_rows(text, starts, &rows)) {
        Py_BEGIN_ALLOW_THREADS;
        threshold = grow(rows.text.buf, rows.text.len / 2, rows.starts.buf, rows.rows, threshold, deepest, most, &trie);
        Py_END_ALLOW_THREADS;
        if (!threshold)
            PyErr_NoMemory();
        else
            result = Py_BuildValue("iy#y#y#", threshold, trie.parent, (Py_ssize_t)trie.size * 4, trie.symbol,
                                  (Py_ssize_t)trie.size * 2, trie.count, (Py_ssize_t)trie.size * 4);
    }
    trie_free(&trie);
    rows_free(&rows);
    return result;
}

static void handle_free(Handle *handle) {
    automaton_free(&handle->automaton);
    for (int i = 0; i < handle->held; i++) PyBuffer_Release(&handle->view[i]);
    free(handle);
}

static void capsule_free(PyObject *capsule) { handle_free(PyCapsule_GetPointer(capsule, CAPSULE)); }

/* Whether nodes come after their parents. */
static int is_trie(const int32_t *parent, const uint16_t *symbol, int32_t nodes) {
    for (int32_t node = 1; node < nodes; node++)
        if (parent[node] < 0 || parent[node] >= node || symbol[node] == BREAK) return 0;
    return nodes > 0;
}

static PyObject *substrings_automaton(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *parent, *symbol, *capsule = NULL;
    if (!PyArg_ParseTuple(args, "OO", &parent, &symbol)) return NULL;
    Handle *handle = calloc(1, sizeof(Handle));
    if (!handle) return PyErr_NoMemory();
    if (view_of(parent, &handle->view[0], "i", -1)) {
        handle->held = 1;
        int32_t nodes = (int32_t)(handle->view[0].len / 4);
        if (view_of(symbol, &handle->view[1], "H", nodes)) {
            handle->held = 2;
            if (!is_trie(handle->view[0].buf, handle->view[1].buf, nodes))
                PyErr_SetString(PyExc_ValueError, "the nodes of a trie come after their parents");
            else if (!automaton_make(&handle->automaton, nodes, handle->view[0].buf, handle->view[1].buf))
                PyErr_NoMemory();
            else
                capsule = PyCapsule_New(handle, CAPSULE, capsule_free);
        }
    }
    if (!capsule) handle_free(handle);
    return capsule;
}

static PyObject *substrings_occur(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *text, *starts, *counts, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &text, &starts, &counts)) return NULL;
    Handle *handle = PyCapsule_GetPointer(capsule, CAPSULE);
    Rows rows;
    Py_buffer out;
    if (!handle || !view_of_output(counts, &out, "lq", handle->automaton.nodes)) return NULL;
    if (read_rows(text, starts, &rows)) {
        int done;
        Py_BEGIN_ALLOW_THREADS;
        done = occur(&handle->automaton, rows.text.buf, rows.starts.buf, rows.rows, out.buf);
        Py_END_ALLOW_THREADS;
        result = done ? Py_NewRef(Py_None) : PyErr_NoMemory();
    }
    rows_free(&rows);
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef METHODS[] = {
    {"grow", substrings_grow, METH_VARARGS,
     "grow(text, starts, threshold, deepest, most) -> (threshold, parents, symbols, counts)"},
    {"automaton", substrings_automaton, METH_VARARGS, "automaton(parents, symbols) -> automaton"},
    {"occur", substrings_occur, METH_VARARGS,
     "occur(automaton, text, starts, counts): adds the number of rows of each node to counts"},
    {"longest", substrings_longest, METH_VARARGS,
     "longest(labels, heads, starts, after, symbols, start, child) -> (number of symbols in the tree, last node)"},
    {"next_of_level", substrings_next_of_level, METH_VARARGS,
     "next_of_level(levels, after): fills in the next node of the same level"},
    {"front_decode", front_decode, METH_VARARGS, "front_decode(rests, shared) -> strings"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_substrings", "Frequent substrings.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__substrings(void) { return PyModule_Create(&MODULE); }
