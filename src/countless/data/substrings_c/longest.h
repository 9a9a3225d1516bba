/* The longest counted part of some symbols, in the tree of data/summaries/substrings.py. */
#ifndef COUNTLESS_LONGEST_H
#define COUNTLESS_LONGEST_H

#include <stdint.h>

#include "../../engine/kernel_c/views.h"

/* The nodes in depth-first order: the first symbol of each, the start of its label, and the next node of its level. */
typedef struct {
    const uint16_t *labels, *heads;
    const int64_t *starts, *after;
    int64_t nodes;
} Tree;

/* The symbol at an index; -1 if it is in no label, or -2 with an error. */
static long symbol_at(PyObject *symbols, Py_ssize_t index) {
    long symbol = PyLong_AsLong(PyTuple_GetItem(symbols, index));
    return symbol == -1 && PyErr_Occurred() ? -2 : symbol < 0 || symbol > UINT16_MAX ? -1 : symbol;
}

/* Follows the symbols from `index` on, beginning with the root's `child`. Returns the index where they leave the tree,
   or -1 with an error. `node` is set to the last node on the path, or -1. */
static Py_ssize_t follow(const Tree *tree, PyObject *symbols, Py_ssize_t index, int64_t child, int64_t *node) {
    Py_ssize_t count = PyTuple_Size(symbols);
    int64_t end = tree->nodes;
    *node = -1;
    while (index < count) {
        long symbol = symbol_at(symbols, index);
        if (symbol == -2) return -1;
        while (child < end && tree->heads[child] != symbol) child = tree->after[child];
        if (child >= end) return index;
        *node = child;
        if (tree->after[child] < end) end = tree->after[child];
        int64_t label = tree->starts[child], last = tree->starts[child + 1];
        for (label++, index++; label < last; label++, index++) {
            symbol = index < count ? symbol_at(symbols, index) : -1;
            if (symbol == -2) return -1;
            if (symbol != tree->labels[label]) return index;
        }
        child++;
    }
    return index;
}

/* For each node the next one of the same level, which may have another parent; the number of nodes if there is none. */
static PyObject *substrings_next_of_level(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *levels, *after, *result = NULL;
    Py_buffer from, to;
    if (!PyArg_ParseTuple(args, "OO", &levels, &after) || !view_of(levels, &from, "B", -1)) return NULL;
    if (view_of_output(after, &to, "lq", -1)) {
        if (to.len != 8 * from.len)
            PyErr_SetString(PyExc_ValueError, "every node has one level");
        else {
            int64_t nodes = from.len, next[256], *next_node = to.buf;
            const uint8_t *level = from.buf;
            for (int i = 0; i < 256; i++) next[i] = nodes;
            for (int64_t node = nodes - 1; node >= 0; node--) {
                next_node[node] = next[level[node]];
                next[level[node]] = node;
            }
            result = Py_NewRef(Py_None);
        }
        PyBuffer_Release(&to);
    }
    PyBuffer_Release(&from);
    return result;
}

static PyObject *substrings_longest(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *arrays[4], *symbols, *result = NULL;
    Py_buffer view[4];
    const char *formats[] = {"H", "H", "lq", "lq"};
    Py_ssize_t index;
    long long child;
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOOO!nL", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &PyTuple_Type, &symbols,
                          &index, &child))
        return NULL;
    while (held < 4 && view_of(arrays[held], &view[held], formats[held], -1)) held++;
    if (held == 4) {
        Tree tree = {view[0].buf, view[1].buf, view[2].buf, view[3].buf, view[1].len / 2};
        if (view[2].len != 8 * (tree.nodes + 1) || view[3].len != 8 * tree.nodes || child < 0 || index < 0 ||
            tree.starts[tree.nodes] * 2 > view[0].len)
            PyErr_SetString(PyExc_ValueError, "the tree's arrays do not fit together");
        else {
            int64_t node;
            Py_ssize_t end = follow(&tree, symbols, index, child, &node);
            if (end >= 0) result = Py_BuildValue("nL", end - index, (long long)node);
        }
    }
    while (held) PyBuffer_Release(&view[--held]);
    return result;
}

#endif
