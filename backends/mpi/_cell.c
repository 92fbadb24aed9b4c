/* The line that stands before each cell of a window: who holds the cell, and what it counts.

   A cell is held by one process at a time. Who finds it held spins, then sleeps in the kernel until
   it is given back, for a limited time; and who comes meanwhile lets those go first who have slept
   for it already, for a limited time too, since a holder that takes it again and again would
   otherwise never let anybody in. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "_shared.h"
#include "_writer.h"

#define SPIN 20000      /* nanoseconds of looking before sleeping */
#define COURTESY 100000 /* nanoseconds for which those go first who have waited longer */
#define PIECE 262144    /* bytes that are written and timed at once */

typedef struct {
    uint32_t holder; /* number of the rank that holds the cell, from 1; 0 for nobody */
    uint32_t asleep; /* how many sleep until it is given back */
    uint64_t version, received;
    uint64_t weight, time; /* the bits of a double */
    uint64_t pad[3];
} Shared;

typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    Shared *shared;
    uint32_t me;
    Writer writer;
} Line;

static int take(Shared *shared, uint32_t me)
{
    uint32_t nobody = 0;
    return __atomic_load_n(&shared->holder, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&shared->holder, &nobody, me, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

static uint32_t sleepers(const Shared *shared)
{
    return __atomic_load_n(&shared->asleep, __ATOMIC_SEQ_CST);
}

static void sleep_while(Shared *shared, uint32_t holder, int64_t span)
{
    struct timespec limit = {span / 1000000000, span % 1000000000};
    syscall(SYS_futex, &shared->holder, FUTEX_WAIT, holder, &limit, NULL, 0);
}

static int wait_for(Shared *shared, uint32_t me, int64_t patience)
{
    int64_t start = nanoseconds(), now = start;
    for (unsigned turn = 1; now - start < patience; turn++) {
        if (now - start > SPIN || sleepers(shared))
            break;
        if (take(shared, me))
            return 1;
        relax(turn, 0);
        now = nanoseconds();
    }
    while (sleepers(shared) && now - start < patience && now - start < COURTESY) {
        sched_yield();
        now = nanoseconds();
    }
    while (!take(shared, me)) {
        int64_t left = patience - (nanoseconds() - start);
        if (left <= 0)
            return 0;
        __atomic_add_fetch(&shared->asleep, 1, __ATOMIC_SEQ_CST);
        uint32_t holder = __atomic_load_n(&shared->holder, __ATOMIC_SEQ_CST);
        if (holder)
            sleep_while(shared, holder, left);
        int taken = take(shared, me);
        __atomic_sub_fetch(&shared->asleep, 1, __ATOMIC_SEQ_CST);
        if (taken)
            return 1;
    }
    return 1;
}

/* -- a line ------------------------------------------------------------------------------------ */

static PyObject *line_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"memory", "offset", "me", NULL};
    PyObject *memory;
    Py_ssize_t offset;
    unsigned int me;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OnI", names, &memory, &offset, &me))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Line *line = (Line *)allocate(type, 0);
    if (line == NULL)
        return NULL;
    if (PyObject_GetBuffer(memory, &line->memory, PyBUF_WRITABLE) < 0) {
        Py_DECREF(line);
        return NULL;
    }
    if (me == 0 || offset < 0 || offset % 8 ||
        offset + (Py_ssize_t)sizeof(Shared) > line->memory.len) {
        PyErr_SetString(PyExc_ValueError, "a line is 64 bytes inside the memory; ranks are from 1");
        Py_DECREF(line);
        return NULL;
    }
    line->shared = (Shared *)((char *)line->memory.buf + offset);
    line->me = me;
    line->writer.way = PLAIN; /* until it turns out that somebody reads the cell in between */
    return (PyObject *)line;
}

static void line_dealloc(Line *line)
{
    PyTypeObject *type = Py_TYPE((PyObject *)line);
    if (line->memory.obj != NULL)
        PyBuffer_Release(&line->memory);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(line);
    Py_DECREF(type);
}

static PyObject *line_take(Line *line, PyObject *object)
{
    int64_t patience = PyLong_AsLongLong(object);
    if (patience == -1 && PyErr_Occurred())
        return NULL;
    Shared *shared = line->shared;
    int taken = !sleepers(shared) && take(shared, line->me);
    if (!taken && patience > 0) {
        Py_BEGIN_ALLOW_THREADS
        taken = wait_for(shared, line->me, patience);
        Py_END_ALLOW_THREADS
    }
    return PyBool_FromLong(taken);
}

static PyObject *line_give_back(Line *line, PyObject *unused)
{
    (void)unused;
    __atomic_store_n(&line->shared->holder, 0, __ATOMIC_SEQ_CST);
    if (sleepers(line->shared))
        syscall(SYS_futex, &line->shared->holder, FUTEX_WAKE, 1, NULL, NULL, 0);
    Py_RETURN_NONE;
}

/* write(into, from) */
static PyObject *line_write(Line *line, PyObject *const *args, Py_ssize_t given)
{
    Py_buffer into, from;
    if (given != 2) {
        PyErr_SetString(PyExc_TypeError, "write takes two arrays");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &into, PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &from, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&into);
        return NULL;
    }
    int fits = into.len == from.len;
    if (fits) {
        size_t size = (size_t)into.len;
        Py_BEGIN_ALLOW_THREADS
        for (size_t at = 0; at < size; at += PIECE)
            write_shared(&line->writer, (char *)into.buf + at, (const char *)from.buf + at,
                         size - at < PIECE ? size - at : PIECE, size);
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays must have one size");
    }
    PyBuffer_Release(&into);
    PyBuffer_Release(&from);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *line_holder(Line *line, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(__atomic_load_n(&line->shared->holder, __ATOMIC_ACQUIRE));
}

static PyObject *get_count(Line *line, void *offset)
{
    return PyLong_FromUnsignedLongLong(look((uint64_t *)((char *)line->shared + (size_t)offset)));
}

static int set_count(Line *line, PyObject *value, void *offset)
{
    uint64_t count = value == NULL ? 0 : PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred())
        return -1;
    show((uint64_t *)((char *)line->shared + (size_t)offset), count);
    return 0;
}

static PyObject *get_number(Line *line, void *offset)
{
    uint64_t bits = look((uint64_t *)((char *)line->shared + (size_t)offset));
    double number;
    memcpy(&number, &bits, sizeof number);
    return PyFloat_FromDouble(number);
}

static int set_number(Line *line, PyObject *value, void *offset)
{
    double number = value == NULL ? 0.0 : PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return -1;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    show((uint64_t *)((char *)line->shared + (size_t)offset), bits);
    return 0;
}

static PyMethodDef line_methods[] = {
    {"take", (PyCFunction)line_take, METH_O,
     "Hold the cell, waiting for so many nanoseconds; tell whether it is held now."},
    {"give_back", (PyCFunction)line_give_back, METH_NOARGS, "Hold the cell no more."},
    {"write", (PyCFunction)(void (*)(void))line_write, METH_FASTCALL,
     "write(into, from): copy an array into the cell."},
    {NULL, NULL, 0, NULL},
};

#define AT(member) (void *)offsetof(Shared, member)

static PyGetSetDef line_members[] = {
    {"holder", (getter)line_holder, NULL, "Who holds the cell, from 1; 0 for nobody.", NULL},
    {"version", (getter)get_count, (setter)set_count, "How often it was written.", AT(version)},
    {"received", (getter)get_count, (setter)set_count, "Operations that came.", AT(received)},
    {"weight", (getter)get_number, (setter)set_number, "Weight of push-sum.", AT(weight)},
    {"time", (getter)get_number, (setter)set_number, "When it was sent.", AT(time)},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot line_slots[] = {
    {Py_tp_new, line_new},
    {Py_tp_dealloc, line_dealloc},
    {Py_tp_methods, line_methods},
    {Py_tp_getset, line_members},
    {Py_tp_doc, "Line(memory, offset, me): see _cell.c."},
    {0, NULL},
};

static PyType_Spec line_spec = {
    "dectool.backends.mpi._cell.Line", sizeof(Line), 0, Py_TPFLAGS_DEFAULT, line_slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "dectool.backends.mpi._cell", NULL, -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__cell(void)
{
    PyObject *self = PyModule_Create(&module);
    if (self == NULL)
        return NULL;
    PyObject *line = PyType_FromSpec(&line_spec);
    if (line == NULL || PyModule_AddObjectRef(self, "Line", line) < 0)
        return NULL;
    return self;
}
