/* The functions of compression.h as Python functions, and nothing else; included by _native.c.

   Buffers are checked for their size in bytes; the rest is for the modules in Python to get right. */

#ifndef DECTOOL_COMPRESSION_MODULE_H
#define DECTOOL_COMPRESSION_MODULE_H

#include "compression.h"

/* Bytes from which the interpreter may run other threads meanwhile. */
#define DECTOOL_LARGE 32768

static int dectool_fits(Py_ssize_t rows, Py_ssize_t count, size_t itemsize, const Py_buffer *buffer)
{
    if (rows >= 0 && count > 0 && (size_t)buffer->len == (size_t)rows * (size_t)count * itemsize)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a buffer does not have the size that rows and columns ask");
    return 0;
}

static int dectool_known(int kind, int most)
{
    if (kind >= 0 && kind < most)
        return 1;
    PyErr_SetString(PyExc_ValueError, "there is no such kind of number");
    return 0;
}

static PyObject *dectool_done(Py_buffer *one, Py_buffer *two, int ok)
{
    PyBuffer_Release(one);
    PyBuffer_Release(two);
    if (ok)
        Py_RETURN_NONE;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return NULL;
}

/* Run a statement, without the interpreter's lock where it takes long. */
#define DECTOOL_RUN_FREE(bytes, statement)                                                         \
    do {                                                                                           \
        PyThreadState *state = (bytes) > DECTOOL_LARGE ? PyEval_SaveThread() : NULL;               \
        statement;                                                                                 \
        if (state)                                                                                 \
            PyEval_RestoreThread(state);                                                           \
    } while (0)

/* The same with the form of a function for double, or that for float. */
#define DECTOOL_TYPED(kind, bytes, function, ...)                                                  \
    do {                                                                                           \
        if ((kind) == DECTOOL_FLOAT64)                                                             \
            DECTOOL_RUN_FREE(bytes, function##_float64(__VA_ARGS__));                              \
        else                                                                                       \
            DECTOOL_RUN_FREE(bytes, function##_float32(__VA_ARGS__));                              \
    } while (0)

PyDoc_STRVAR(minmax_encode_doc,
             "minmax_encode(kind, x, out, rows, count, block)\n--\n\n"
             "Write the chunks of float64 rows (kind 0) or float32 rows (others) to ``out``; the "
             "header has numbers of ``kind``.");

static PyObject *minmax_encode(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, ok = 0;
    Py_buffer x, out;
    Py_ssize_t rows, count, block;
    if (!PyArg_ParseTuple(args, "iy*w*nnn:minmax_encode", &kind, &x, &out, &rows, &count, &block))
        return NULL;
    size_t itemsize = kind == DECTOOL_FLOAT64 ? 8 : 4;
    if (!dectool_known(kind, DECTOOL_KINDS) || !dectool_fits(rows, count, itemsize, &x))
        return dectool_done(&x, &out, 0);
    if (block < 1)
        PyErr_SetString(PyExc_ValueError, "a chunk has at least one number");
    else if (dectool_fits(rows, (Py_ssize_t)dectool_minmax_size((size_t)count, (size_t)block), 1,
                          &out)) {
        ok = 1;
        DECTOOL_TYPED(kind, x.len, dectool_minmax_encode, kind, x.buf, out.buf, (size_t)rows,
                      (size_t)count, (size_t)block);
    }
    return dectool_done(&x, &out, ok);
}

PyDoc_STRVAR(minmax_decode_doc,
             "minmax_decode(kind, data, out, rows, count, block, weight)\n--\n\n"
             "Undo minmax_encode; with a weight other than None, add weight times the numbers.");

static PyObject *minmax_decode(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, ok = 0;
    Py_buffer data, out;
    Py_ssize_t rows, count, block;
    PyObject *given;
    if (!PyArg_ParseTuple(args, "iy*w*nnnO:minmax_decode", &kind, &data, &out, &rows, &count,
                          &block, &given))
        return NULL;
    double weight = given == Py_None ? 0.0 : PyFloat_AsDouble(given);
    float single = (float)weight;
    const void *chosen = kind == DECTOOL_FLOAT64 ? (void *)&weight : (void *)&single;
    const void *factor = given == Py_None ? NULL : chosen;
    size_t itemsize = kind == DECTOOL_FLOAT64 ? 8 : 4;
    if (PyErr_Occurred() || !dectool_known(kind, DECTOOL_KINDS) ||
        !dectool_fits(rows, count, itemsize, &out))
        return dectool_done(&data, &out, 0);
    if (block < 1)
        PyErr_SetString(PyExc_ValueError, "a chunk has at least one number");
    else if (dectool_fits(rows, (Py_ssize_t)dectool_minmax_size((size_t)count, (size_t)block), 1,
                          &data)) {
        ok = 1;
        DECTOOL_TYPED(kind, out.len, dectool_minmax_decode, kind, data.buf, out.buf, (size_t)rows,
                      (size_t)count, (size_t)block, factor);
    }
    return dectool_done(&data, &out, ok);
}

PyDoc_STRVAR(sums_doc,
             "sums(kind, x, rows, count, square, units, totals, out, offset)\n--\n\n"
             "Write the sums of |unit x| or (unit x)^2 of each row to ``totals``; where ``out`` is "
             "not None, write the signs of each row to its rows, from byte ``offset`` on.");

static PyObject *sums(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, square, ok = 0;
    Py_buffer x, units, totals, out = {0};
    Py_ssize_t rows, count, offset;
    PyObject *given;
    if (!PyArg_ParseTuple(args, "iy*nnpy*w*On:sums", &kind, &x, &rows, &count, &square, &units,
                          &totals, &given, &offset))
        return NULL;
    int signs = given != Py_None;
    if (!signs || PyObject_GetBuffer(given, &out, PyBUF_WRITABLE) == 0) {
        size_t stride = (size_t)offset + ((size_t)count + 7) / 8;
        if (dectool_known(kind, 2) && offset >= 0 &&
            dectool_fits(rows, count, kind == DECTOOL_FLOAT64 ? 8 : 4, &x) &&
            dectool_fits(rows, 1, sizeof(double), &units) &&
            dectool_fits(rows, 1, sizeof(double), &totals) &&
            (!signs || dectool_fits(rows, (Py_ssize_t)stride, 1, &out))) {
            uint8_t *bits = signs ? (uint8_t *)out.buf + offset : NULL;
            DECTOOL_TYPED(kind, x.len, ok = dectool_sums, x.buf, units.buf, totals.buf,
                          (size_t)rows, (size_t)count, square, bits, stride);
        }
        if (signs)
            PyBuffer_Release(&out);
    }
    PyBuffer_Release(&x);
    return dectool_done(&units, &totals, ok);
}

PyDoc_STRVAR(spread_signs_doc,
             "spread_signs(kind, data, out, rows, count)\n--\n\n"
             "Write numbers of one size, from rows of a scale and a bit for each sign.");

static PyObject *spread_signs(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, ok = 0;
    Py_buffer data, out;
    Py_ssize_t rows, count;
    if (!PyArg_ParseTuple(args, "iy*w*nn:spread_signs", &kind, &data, &out, &rows, &count))
        return NULL;
    Py_ssize_t itemsize = kind == DECTOOL_FLOAT64 ? 8 : 4, stride = itemsize + (count + 7) / 8;
    if (dectool_known(kind, 2) && dectool_fits(rows, count, (size_t)itemsize, &out) &&
        dectool_fits(rows, stride, 1, &data)) {
        ok = 1;
        DECTOOL_TYPED(kind, out.len, dectool_spread_signs, data.buf, out.buf, (size_t)rows,
                      (size_t)count, (size_t)stride);
    }
    return dectool_done(&data, &out, ok);
}

PyDoc_STRVAR(largest_doc,
             "largest(kind, x, out, rows, count, k)\n--\n\n"
             "Write the places (int64) of the k largest magnitudes of each row, ascending.");

static PyObject *largest(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, ok = 0;
    Py_buffer x, out;
    Py_ssize_t rows, count, k;
    if (!PyArg_ParseTuple(args, "iy*w*nnn:largest", &kind, &x, &out, &rows, &count, &k))
        return NULL;
    if (k > count)
        PyErr_SetString(PyExc_ValueError, "k is more than there are");
    else if (dectool_known(kind, 2) &&
             dectool_fits(rows, count, kind == DECTOOL_FLOAT64 ? 8 : 4, &x) &&
             dectool_fits(rows, k, sizeof(int64_t), &out)) {
        DECTOOL_TYPED(kind, x.len, ok = dectool_largest, x.buf, (size_t)rows, (size_t)count,
                      (size_t)k, out.buf);
    }
    return dectool_done(&x, &out, ok);
}

PyDoc_STRVAR(levels_doc,
             "levels(kind, x, norms, rows, count, levels, uniform, codes)\n--\n\n"
             "Write codes of 1 or 2 bytes, or where ``uniform`` is None read them and write ``x``; "
             "a norm for each row or each number.");

static PyObject *levels(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, ok = 0, most;
    Py_buffer x, norms, codes, uniform = {0};
    Py_ssize_t rows, count;
    PyObject *numbers, *given, *coded;
    if (!PyArg_ParseTuple(args, "iOy*nniOO:levels", &kind, &numbers, &norms, &rows, &count, &most,
                          &given, &coded))
        return NULL;
    int encode = given != Py_None;
    if (PyObject_GetBuffer(numbers, &x, encode ? PyBUF_SIMPLE : PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&norms);
        return NULL;
    }
    if (PyObject_GetBuffer(coded, &codes, encode ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
        return dectool_done(&norms, &x, 0);
    if (!encode || PyObject_GetBuffer(given, &uniform, PyBUF_SIMPLE) == 0) {
        size_t itemsize = kind == DECTOOL_FLOAT64 ? 8 : 4;
        int width = codes.len == rows * count ? 1 : 2;
        int each = norms.len != rows * (Py_ssize_t)itemsize;
        if (dectool_known(kind, 2) && dectool_fits(rows, count, itemsize, &x) &&
            dectool_fits(rows, each ? count : 1, itemsize, &norms) &&
            dectool_fits(rows, count, (size_t)width, &codes) &&
            (!encode || dectool_fits(rows, count, itemsize, &uniform))) {
            ok = 1;
            DECTOOL_TYPED(kind, x.len, dectool_levels, x.buf, norms.buf, (size_t)rows,
                          (size_t)count, each, most, uniform.buf, codes.buf, width);
        }
        if (encode)
            PyBuffer_Release(&uniform);
    }
    PyBuffer_Release(&x);
    return dectool_done(&norms, &codes, ok);
}

PyDoc_STRVAR(cast_doc, "cast(kind, x, out)\n--\n\n"
                       "Convert float32 to halves of ``kind``, or halves to float32, by size.");

static PyObject *cast(PyObject *module, PyObject *args)
{
    (void)module;
    int kind, ok = 0;
    Py_buffer x, out;
    if (!PyArg_ParseTuple(args, "iy*w*:cast", &kind, &x, &out))
        return NULL;
    int narrow = x.len >= out.len;
    size_t size = (size_t)(narrow ? out.len : x.len) / 2;
    if (kind != DECTOOL_FLOAT16 && kind != DECTOOL_BFLOAT16)
        PyErr_SetString(PyExc_ValueError, "there is no such kind of half");
    else if ((size_t)x.len != size * (narrow ? 4 : 2) || (size_t)out.len != size * (narrow ? 2 : 4))
        PyErr_SetString(PyExc_ValueError, "one buffer must have twice the bytes of the other");
    else {
        ok = 1;
        if (narrow && kind == DECTOOL_FLOAT16)
            DECTOOL_RUN_FREE(x.len, dectool_narrow_float16(x.buf, out.buf, size));
        else if (narrow)
            DECTOOL_RUN_FREE(x.len, dectool_narrow_bfloat16(x.buf, out.buf, size));
        else if (kind == DECTOOL_FLOAT16)
            DECTOOL_RUN_FREE(x.len, dectool_widen_float16(x.buf, out.buf, size));
        else
            DECTOOL_RUN_FREE(x.len, dectool_widen_bfloat16(x.buf, out.buf, size));
    }
    return dectool_done(&x, &out, ok);
}

PyDoc_STRVAR(threads_doc, "threads(numbers)\n--\n\n"
                          "Return how many threads share the work on so many numbers.");

static PyObject *threads(PyObject *module, PyObject *numbers)
{
    (void)module;
    size_t given = PyLong_AsSize_t(numbers);
    if (given == (size_t)-1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(dectool_threads(given));
}

#endif
