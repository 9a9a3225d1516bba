/* The longest counted part of some symbols, in the tree of data/summaries/substrings.py. */
#ifndef COUNTLESS_LONGEST_H
#define COUNTLESS_LONGEST_H

#include <stdint.h>

#include "../../engine/kernel_c/views.h"

/* The nodes in the order of a walk: of each its first symbol, where its label begins, and the next one of its level. */
typedef struct {
    const uint16_t *labels, *heads;
    const int64_t *starts, *after;
    int64_t nodes;
} Tree;

/* The symbol at a place, -1 if no label has it, or -2 with an error. */
static long symbol_at(PyObject *symbols, Py_ssize_t place) {
    long symbol = PyLong_AsLong(PyTuple_GetItem(symbols, place));
    return symbol == -1 && PyErr_Occurred() ? -2 : symbol < 0 || symbol > UINT16_MAX ? -1 : symbol;
}

/* Follows the symbols from `place` on, from the root's `child` on; the place where they leave the tree, or -1 with an
   error. `node` is the last one that was come to, or -1. */
static Py_ssize_t follow(const Tree *tree, PyObject *symbols, Py_ssize_t place, int64_t child, int64_t *node) {
    Py_ssize_t count = PyTuple_Size(symbols);
    int64_t end = tree->nodes;
    *node = -1;
    while (place < count) {
        long symbol = symbol_at(symbols, place);
        if (symbol == -2) return -1;
        while (child < end && tree->heads[child] != symbol) child = tree->after[child];
        if (child >= end) return place;
        *node = child;
        if (tree->after[child] < end) end = tree->after[child];
        int64_t label = tree->starts[child], last = tree->starts[child + 1];
        for (label++, place++; label < last; label++, place++) {
            symbol = place < count ? symbol_at(symbols, place) : -1;
            if (symbol == -2) return -1;
            if (symbol != tree->labels[label]) return place;
        }
        child++;
    }
    return place;
}

/* Of each node the next one of the same level, perhaps of another parent; the number of nodes where there is none. */
static PyObject *substrings_next_of_level(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *levels, *after, *found = NULL;
    Py_buffer from, to;
    if (!PyArg_ParseTuple(args, "OO", &levels, &after) || !view_of(levels, &from, "B", -1)) return NULL;
    if (view_of_output(after, &to, "lq", -1)) {
        if (to.len != 8 * from.len)
            PyErr_SetString(PyExc_ValueError, "every node has one level");
        else {
            int64_t nodes = from.len, next[256], *own = to.buf;
            const uint8_t *level = from.buf;
            for (int each = 0; each < 256; each++) next[each] = nodes;
            for (int64_t node = nodes - 1; node >= 0; node--) {
                own[node] = next[level[node]];
                next[level[node]] = node;
            }
            found = Py_NewRef(Py_None);
        }
        PyBuffer_Release(&to);
    }
    PyBuffer_Release(&from);
    return found;
}

static PyObject *substrings_longest(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *arrays[4], *symbols, *found = NULL;
    Py_buffer view[4];
    const char *formats[] = {"H", "H", "lq", "lq"};
    Py_ssize_t place;
    long long child;
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOOO!nL", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &PyTuple_Type, &symbols, &place,
                          &child))
        return NULL;
    while (held < 4 && view_of(arrays[held], &view[held], formats[held], -1)) held++;
    if (held == 4) {
        Tree tree = {view[0].buf, view[1].buf, view[2].buf, view[3].buf, view[1].len / 2};
        if (view[2].len != 8 * (tree.nodes + 1) || view[3].len != 8 * tree.nodes || child < 0 || place < 0 ||
            tree.starts[tree.nodes] * 2 > view[0].len)
            PyErr_SetString(PyExc_ValueError, "the tree's arrays do not fit together");
        else {
            int64_t node;
            Py_ssize_t end = follow(&tree, symbols, place, child, &node);
            if (end >= 0) found = Py_BuildValue("nL", end - place, (long long)node);
        }
    }
    while (held) PyBuffer_Release(&view[--held]);
    return found;
}

#endif
