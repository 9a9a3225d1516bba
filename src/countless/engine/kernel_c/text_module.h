/* Trees of tokens as Python sees them: what it hands over is checked, and kept alive as long as it is read. */
#ifndef COUNTLESS_TEXT_MODULE_H
#define COUNTLESS_TEXT_MODULE_H

#include "text.h"
#include "views.h"

typedef struct {
    TextModel model;
    Views views;
    Tree *spare; /* touched only with the interpreter's lock held */
    int64_t spare_bytes, plantings;
} TextKernel;

static const char TEXT_CAPSULE[] = "countless.engine._kernel.text";
static const char TREE_CAPSULE[] = "countless.engine._kernel.tree";

/* ---- models ---- */

static void text_kernel_free(TextKernel *kernel) {
    while (kernel->spare) {
        Tree *tree = kernel->spare;
        kernel->spare = tree->next;
        tree_free(&kernel->model, tree);
    }
    views_free(&kernel->views);
    free(kernel->model.block);
    free(kernel);
}

static void text_capsule_free(PyObject *capsule) { text_kernel_free(PyCapsule_GetPointer(capsule, TEXT_CAPSULE)); }

/* The next two arrays: a linear map's panels and its bias. */
static int map_of(Views *views, PyObject *arrays, int *next, Py_ssize_t depth, Py_ssize_t columns, const float **w,
                  const float **bias) {
    *w = floats(views, PyList_GetItem(arrays, *next), depth * columns);
    if (!*w) return 0;
    *bias = floats(views, PyList_GetItem(arrays, *next + 1), columns);
    *next += 2;
    return *bias != NULL;
}

static int load_text(TextKernel *kernel, PyObject *grams, PyObject *hash_ids, PyObject *arrays) {
    TextModel *model = &kernel->model;
    Views *views = &kernel->views;
    int sizes[] = {model->symbols, model->length, model->width,  model->heads,
                   model->inner,   model->blocks, model->buckets};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] < 1 || sizes[i] > MOST_NODES) {
            PyErr_SetString(PyExc_ValueError, "a size of the model is out of range");
            return 0;
        }
    }
    if (model->width % model->heads || PyList_Size(arrays) != 5 + 10 * (Py_ssize_t)model->blocks) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
        return 0;
    }
    model->row = padded(model->width);
    model->head = padded(model->width / model->heads);
    model->attention = model->head * model->heads;
    views->room = 7 + 10 * model->blocks;
    views->view = calloc(views->room, sizeof(Py_buffer));
    model->block = calloc(model->blocks, sizeof(Block));
    if (!views->view || !model->block) {
        PyErr_NoMemory();
        return 0;
    }
    if (!view_of(grams, &views->view[0], "lq", -1)) return 0;
    views->count = 1;
    model->gram = views->view[0].buf;
    if (!view_of(hash_ids, &views->view[1], "lq", model->symbols + 1)) return 0;
    views->count = 2;
    model->hash_id = views->view[1].buf;
    model->grams = (int)(views->view[0].len / (Py_ssize_t)sizeof(int64_t));
    Py_ssize_t row = model->row, width = model->width, attention = model->attention, inner = padded(model->inner);
    int next = 3;
    model->embedding = floats(views, PyList_GetItem(arrays, 0), (model->symbols + 1) * row);
    if (!model->embedding) return 0;
    model->positions = floats(views, PyList_GetItem(arrays, 1), (model->length + 1) * row);
    if (!model->positions) return 0;
    model->hashed = floats(views, PyList_GetItem(arrays, 2), (Py_ssize_t)model->grams * model->buckets * row);
    if (!model->hashed) return 0;
    if (!map_of(views, arrays, &next, width, padded(model->symbols), &model->tied, &model->bias)) return 0;
    for (int b = 0; b < model->blocks; b++) {
        Block *block = &model->block[b];
        if (!map_of(views, arrays, &next, width, attention, &block->query, &block->query_bias) ||
            !map_of(views, arrays, &next, width, 2 * attention, &block->keys, &block->keys_bias) ||
            !map_of(views, arrays, &next, attention, row, &block->out, &block->out_bias) ||
            !map_of(views, arrays, &next, width, inner, &block->up, &block->up_bias) ||
            !map_of(views, arrays, &next, model->inner, row, &block->down, &block->down_bias))
            return 0;
    }
    return 1;
}

static PyObject *text_load(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *grams, *hash_ids, *arrays;
    TextKernel *kernel = calloc(1, sizeof(TextKernel));
    if (!kernel) return PyErr_NoMemory();
    TextModel *model = &kernel->model;
    if (PyArg_ParseTuple(args, "(iiiiiii)OOO", &model->symbols, &model->length, &model->width, &model->heads,
                         &model->inner, &model->blocks, &model->buckets, &grams, &hash_ids, &arrays)) {
        if (!PyList_Check(arrays))
            PyErr_SetString(PyExc_TypeError, "the arrays are a list");
        else if (load_text(kernel, grams, hash_ids, arrays))
            return PyCapsule_New(kernel, TEXT_CAPSULE, text_capsule_free);
    }
    text_kernel_free(kernel);
    return NULL;
}

/* ---- trees; a tree's capsule has its model's as context, and a reference to it ---- */

static TextKernel *kernel_of(PyObject *tree_capsule) {
    PyObject *capsule = PyCapsule_GetContext(tree_capsule);
    return capsule ? PyCapsule_GetPointer(capsule, TEXT_CAPSULE) : NULL;
}

static void give_back(TextKernel *kernel, Tree *tree) {
    int64_t bytes = tree_bytes(&kernel->model, tree);
    if (kernel->spare_bytes + bytes > SPARE_BYTES) {
        tree_free(&kernel->model, tree);
        return;
    }
    kernel->spare_bytes += bytes;
    tree->next = kernel->spare;
    kernel->spare = tree;
}

static Tree *take(TextKernel *kernel) {
    Tree *tree = kernel->spare;
    if (!tree) return tree_new(&kernel->model);
    kernel->spare = tree->next;
    kernel->spare_bytes -= tree_bytes(&kernel->model, tree);
    return tree;
}

static void tree_capsule_free(PyObject *capsule) {
    PyObject *owner = PyCapsule_GetContext(capsule);
    give_back(kernel_of(capsule), PyCapsule_GetPointer(capsule, TREE_CAPSULE));
    Py_XDECREF(owner);
}

static Tree *tree_of(PyObject *capsule) {
    Tree *tree = PyCapsule_GetPointer(capsule, TREE_CAPSULE);
    if (tree && tree->busy) {
        PyErr_SetString(PyExc_RuntimeError, "a tree belongs to one thread at a time");
        return NULL;
    }
    return tree;
}

static int raise_for(int status) {
    static const char *const messages[] = {
        [TREE_TOO_LARGE] = "the tree is too large",
        [BAD_PARENT] = "a parent is not a node that comes before",
        [BAD_TOKEN] = "a token is neither a symbol nor MASK",
        [BAD_POSITION] = "a position is beyond the model's length, or not after its parent's",
    };
    if (status == TREE_NO_MEMORY)
        PyErr_NoMemory();
    else if (status != GROWN)
        PyErr_SetString(PyExc_ValueError, messages[status]);
    return status == GROWN;
}

/* The roots of `base`, unless the tree has them still from before. */
static int plant_again(TextKernel *kernel, Tree *tree, PyObject *base_capsule) {
    const TextModel *model = &kernel->model;
    Tree *base = tree_of(base_capsule);
    if (!base) return 0;
    if (kernel_of(base_capsule) != kernel || !base->rooted || base->roots != model->length + 1) {
        PyErr_SetString(PyExc_ValueError, "the base is another model's tree, or not all of its roots are computed");
        return 0;
    }
    if (tree->planting != base->planting) return raise_for(tree_copy_roots(model, tree, base));
    tree->size = tree->roots;
    return 1;
}

/* Roots for each context of `shift_array`, or for one that adds nothing; `starts_array` takes what follows them. */
static int plant(TextKernel *kernel, Tree *tree, PyObject *shift_array, PyObject *starts_array) {
    const TextModel *model = &kernel->model;
    Py_buffer shift = {0}, starts;
    int status = TREE_NO_MEMORY, shifted = shift_array != Py_None;
    if (shifted && !view_of(shift_array, &shift, "f", -1)) return 0;
    Py_ssize_t floats = shift.len / (Py_ssize_t)sizeof(float), contexts = shifted ? floats / model->width : 1;
    int good = contexts > 0 && (!shifted || contexts * model->width == floats);
    if (!good) PyErr_SetString(PyExc_ValueError, "the shifts of contexts do not fit the model");
    good = good && view_of_output(starts_array, &starts, "f", contexts * model->symbols);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        status = tree_begin(model, tree, contexts, shift.buf, starts.buf);
        Py_END_ALLOW_THREADS;
        PyBuffer_Release(&starts);
        tree->planting = ++kernel->plantings;
    }
    if (shifted) PyBuffer_Release(&shift);
    return good && raise_for(status);
}

static PyObject *text_tree(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *base, *shift, *starts;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &base, &shift, &starts)) return NULL;
    TextKernel *kernel = PyCapsule_GetPointer(capsule, TEXT_CAPSULE);
    if (!kernel) return NULL;
    Tree *tree = take(kernel);
    if (!tree) return PyErr_NoMemory();
    PyObject *found = NULL;
    int planted = base == Py_None ? plant(kernel, tree, shift, starts) : plant_again(kernel, tree, base);
    if (!planted || !(found = PyCapsule_New(tree, TREE_CAPSULE, NULL))) {
        tree_free(&kernel->model, tree);
        return NULL;
    }
    Py_INCREF(capsule);
    PyCapsule_SetContext(found, capsule);
    PyCapsule_SetDestructor(found, tree_capsule_free);
    return found;
}

static PyObject *text_extend(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *arrays[4];
    if (!PyArg_ParseTuple(args, "OOOOO", &capsule, &arrays[0], &arrays[1], &arrays[2], &arrays[3])) return NULL;
    Tree *tree = tree_of(capsule);
    if (!tree) return NULL;
    const TextModel *model = &kernel_of(capsule)->model;
    Py_buffer parents, tokens, positions = {0}, out;
    int placed = arrays[2] != Py_None, status = TREE_NO_MEMORY, good = 0;
    if (!view_of(arrays[0], &parents, "lq", -1)) return NULL;
    Py_ssize_t count = parents.len / (Py_ssize_t)sizeof(int64_t);
    if (view_of(arrays[1], &tokens, "lq", count)) {
        if (!placed || view_of(arrays[2], &positions, "lq", count)) {
            if (view_of_output(arrays[3], &out, "f", count * model->symbols)) {
                good = tree->busy = 1;
                Py_BEGIN_ALLOW_THREADS;
                status = tree_extend(model, tree, count, parents.buf, tokens.buf, positions.buf, out.buf);
                Py_END_ALLOW_THREADS;
                tree->busy = 0;
                PyBuffer_Release(&out);
            }
            if (placed) PyBuffer_Release(&positions);
        }
        PyBuffer_Release(&tokens);
    }
    PyBuffer_Release(&parents);
    return good && raise_for(status) ? PyLong_FromLong(tree->size) : NULL;
}

static PyObject *text_roots(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *array;
    Py_buffer out;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &array)) return NULL;
    Tree *tree = tree_of(capsule);
    if (!tree) return NULL;
    const TextModel *model = &kernel_of(capsule)->model;
    if (!view_of_output(array, &out, "f", (Py_ssize_t)tree->roots * model->symbols)) return NULL;
    tree->busy = 1;
    Py_BEGIN_ALLOW_THREADS;
    tree_root(model, tree, out.buf);
    Py_END_ALLOW_THREADS;
    tree->busy = 0;
    PyBuffer_Release(&out);
    Py_RETURN_NONE;
}

static PyObject *text_places(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *array;
    int contexts;
    Py_buffer out;
    if (!PyArg_ParseTuple(args, "OpO", &capsule, &contexts, &array)) return NULL;
    Tree *tree = tree_of(capsule);
    if (!tree || !view_of_output(array, &out, "lq", tree->size)) return NULL;
    const int32_t *numbers = contexts ? tree->context : tree->position;
    for (int i = 0; i < tree->size; i++) ((int64_t *)out.buf)[i] = numbers[i];
    PyBuffer_Release(&out);
    Py_RETURN_NONE;
}

#endif
