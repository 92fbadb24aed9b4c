/* The kernels as a Python module; see weighted_sum.h and compression.h. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "_compression_module.h"
#include "weighted_sum.h"

#define MOST_TERMS 64

PyDoc_STRVAR(weighted_sum_doc,
             "weighted_sum(kind, out, weights, terms)\n--\n\n"
             "Write the weighted sum of C-contiguous buffers of equal size into ``out``.");

static PyObject *weighted_sum(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (given != 4) {
        PyErr_SetString(PyExc_TypeError, "weighted_sum takes kind, out, weights and terms");
        return NULL;
    }
    long kind = PyLong_AsLong(args[0]);
    if (kind == -1 && PyErr_Occurred())
        return NULL;
    if (kind < 0 || kind >= DECTOOL_KINDS || !PyTuple_Check(args[2]) || !PyList_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "weights must be a tuple, terms a list, kind a number");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(args[3]);
    if (count < 1 || count > MOST_TERMS || PyTuple_Size(args[2]) != count) {
        PyErr_SetString(PyExc_ValueError, "there must be 1 to 64 terms, with a weight for each");
        return NULL;
    }
    Py_buffer out, buffers[MOST_TERMS];
    const void *terms[MOST_TERMS];
    double weights[MOST_TERMS];
    if (PyObject_GetBuffer(args[1], &out, PyBUF_WRITABLE) < 0)
        return NULL;
    Py_ssize_t held = 0;
    for (; held < count; held++) {
        weights[held] = PyFloat_AsDouble(PyTuple_GetItem(args[2], held));
        if (weights[held] == -1.0 && PyErr_Occurred())
            break;
        if (PyObject_GetBuffer(PyList_GetItem(args[3], held), &buffers[held], PyBUF_SIMPLE) < 0)
            break;
        terms[held] = buffers[held].buf;
        if (buffers[held].len != out.len) {
            PyErr_SetString(PyExc_ValueError, "terms and out must have one size");
            PyBuffer_Release(&buffers[held]);
            break;
        }
    }
    if (held == count) {
        size_t size = (size_t)out.len / dectool_itemsize[kind];
        if (out.len > DECTOOL_LARGE) {
            Py_BEGIN_ALLOW_THREADS
            dectool_weighted_sum((enum dectool_kind)kind, out.buf, terms, weights, (size_t)count,
                                 size);
            Py_END_ALLOW_THREADS
        } else
            dectool_weighted_sum((enum dectool_kind)kind, out.buf, terms, weights, (size_t)count,
                                 size);
    }
    for (Py_ssize_t k = 0; k < held; k++)
        PyBuffer_Release(&buffers[k]);
    PyBuffer_Release(&out);
    if (held < count)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"weighted_sum", (PyCFunction)(void (*)(void))weighted_sum, METH_FASTCALL, weighted_sum_doc},
    {"minmax_encode", minmax_encode, METH_VARARGS, minmax_encode_doc},
    {"minmax_decode", minmax_decode, METH_VARARGS, minmax_decode_doc},
    {"sums", sums, METH_VARARGS, sums_doc},
    {"spread_signs", spread_signs, METH_VARARGS, spread_signs_doc},
    {"largest", largest, METH_VARARGS, largest_doc},
    {"levels", levels, METH_VARARGS, levels_doc},
    {"cast", cast, METH_VARARGS, cast_doc},
    {"threads", threads, METH_O, threads_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "dectool.kernels._native", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    if (dectool_watch_forks() != 0)
        return PyErr_NoMemory();
    return PyModule_Create(&module);
}
