/* Boards and averages through them, for Python: see _slots.h and _exchange.h. */

#include "_exchange.h"

#include <structmember.h>

/* -- a board ----------------------------------------------------------------------------------- */

static PyObject *board_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"memory", "readers", "me", NULL};
    PyObject *memory;
    Py_ssize_t readers, me;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Onn", names, &memory, &readers, &me))
        return NULL;
    if (readers < 1 || readers > MOST_READERS || me < -1 || me >= readers) {
        PyErr_SetString(PyExc_ValueError, "a board has 1 to 1024 readers, and me is one or -1");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Board *board = (Board *)allocate(type, 0);
    if (board == NULL)
        return NULL;
    size_t control = control_size(readers);
    if (PyObject_GetBuffer(memory, &board->memory, PyBUF_WRITABLE) < 0) {
        Py_DECREF(board);
        return NULL;
    }
    if ((size_t)board->memory.len < control + 2 * PAGE) {
        PyErr_SetString(PyExc_ValueError, "too little memory for a board");
        Py_DECREF(board);
        return NULL;
    }
    board->readers = readers;
    board->me = me;
    board->capacity = ((size_t)board->memory.len - control) / 2 / PAGE * PAGE;
    board->heads = (Head *)board->memory.buf;
    board->posted = (Posted *)(board->heads + 2);
    board->taken = (Taken *)(board->posted + readers);
    board->data = (char *)board->memory.buf + control;
    for (int slot = 0; slot < 2; slot++) {
        board->listeners[slot] = PyMem_Calloc((size_t)readers, sizeof(uint32_t));
        if (board->listeners[slot] == NULL) {
            Py_DECREF(board);
            return PyErr_NoMemory();
        }
    }
    if (me >= 0)
        show(&board->taken[me].attached, 1);
    return (PyObject *)board;
}

static void board_dealloc(Board *board)
{
    PyTypeObject *type = Py_TYPE((PyObject *)board);
    PyMem_Free(board->listeners[0]);
    PyMem_Free(board->listeners[1]);
    if (board->memory.obj != NULL)
        PyBuffer_Release(&board->memory);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(board);
    Py_DECREF(type);
}

static int reader_of(const Board *board, PyObject *object, Py_ssize_t *reader)
{
    *reader = PyLong_AsSsize_t(object);
    if (*reader == -1 && PyErr_Occurred())
        return 0;
    if (*reader < 0 || *reader >= board->readers) {
        PyErr_SetString(PyExc_ValueError, "no such reader");
        return 0;
    }
    return 1;
}

static PyObject *board_attached(Board *board, PyObject *object)
{
    Py_ssize_t reader;
    if (!reader_of(board, object, &reader))
        return NULL;
    return PyBool_FromLong((long)look(&board->taken[reader].attached));
}

static PyObject *board_count(Board *board, PyObject *object)
{
    Py_ssize_t reader;
    if (!reader_of(board, object, &reader))
        return NULL;
    return PyLong_FromUnsignedLongLong(board->posted[reader].sent++);
}

static PyObject *board_free(Board *board, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(slot_is_free(board, (int)(board->turn & 1)));
}

static PyObject *board_sent(Board *board, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(board->posted[board->me].sent);
}

static PyObject *board_counts(Board *board, PyObject *unused)
{
    (void)unused;
    PyObject *counts = PyList_New(board->readers);
    for (Py_ssize_t i = 0; counts != NULL && i < board->readers; i++)
        PyList_SetItem(counts, i, PyLong_FromUnsignedLongLong(board->posted[i].sent));
    return counts;
}

static PyObject *board_go_on(Board *board, PyObject *counts)
{
    if (!PyList_Check(counts) || PyList_Size(counts) != board->readers) {
        PyErr_SetString(PyExc_ValueError, "there must be a count for each reader");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < board->readers; i++)
        board->posted[i].sent = PyLong_AsUnsignedLongLong(PyList_GetItem(counts, i));
    Py_RETURN_NONE;
}

static PyObject *board_write(Board *board, PyObject *args)
{
    unsigned long long number, low, high;
    const char *layout;
    Py_ssize_t described;
    PyObject *buffers;
    if (!PyArg_ParseTuple(args, "KKKy#O!", &number, &low, &high, &layout, &described,
                          &PyTuple_Type, &buffers))
        return NULL;
    Py_ssize_t count = PyTuple_Size(buffers);
    int slot = (int)(board->turn & 1);
    if (count > MOST_BUFFERS || !slot_is_free(board, slot))
        return PyLong_FromLong(-1);
    Py_buffer views[MOST_BUFFERS];
    size_t size = 0;
    Py_ssize_t held = 0;
    for (; held < count; held++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(buffers, held), &views[held], PyBUF_SIMPLE) < 0)
            break;
        size += aligned((size_t)views[held].len);
    }
    int fits = held == count && size + (size_t)described <= board->capacity;
    if (fits) {
        write_head(board, slot, number, low, high, size, 0, layout, (size_t)described);
        char *place = board->data + (size_t)slot * board->capacity;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < count; k++) {
            write_shared(&board->writer, place, views[k].buf, (size_t)views[k].len,
                         board->turn > 1 ? 2 * size : 0);
            place += aligned((size_t)views[k].len);
        }
        Py_END_ALLOW_THREADS
        show(&board->heads[slot].available, size);
        board->turn++;
    }
    for (Py_ssize_t k = 0; k < held; k++)
        PyBuffer_Release(&views[k]);
    if (held < count)
        return NULL;
    return PyLong_FromLong(fits ? slot : -1);
}

static PyObject *board_post(Board *board, PyObject *args)
{
    int slot;
    Py_ssize_t reader;
    if (!PyArg_ParseTuple(args, "in", &slot, &reader))
        return NULL;
    if (slot < 0 || slot > 1 || reader < 0 || reader >= board->readers ||
        board->listening[slot] >= board->readers) {
        PyErr_SetString(PyExc_ValueError, "no such slot or reader");
        return NULL;
    }
    post_to(board, slot, reader);
    Py_RETURN_NONE;
}

static PyObject *board_next(Board *board, PyObject *unused)
{
    (void)unused;
    int slot = next_slot(board);
    if (slot >= 0 && look(&board->heads[slot].available) != board->heads[slot].size)
        slot = -1;
    return PyLong_FromLong(slot);
}

static PyObject *board_content(Board *board, PyObject *object)
{
    long slot = PyLong_AsLong(object);
    if (slot != 0 && slot != 1) {
        PyErr_SetString(PyExc_ValueError, "a board has slots 0 and 1");
        return NULL;
    }
    const Head *head = &board->heads[slot];
    const char *data = board->data + (size_t)slot * board->capacity;
    PyObject *bytes = PyBytes_FromStringAndSize(data + head->size, (Py_ssize_t)head->layout);
    Py_ssize_t offset = data - (const char *)board->memory.buf;
    return Py_BuildValue("KNn", (unsigned long long)head->number, bytes, offset);
}

static PyObject *board_take(Board *board, PyObject *object)
{
    long slot = PyLong_AsLong(object);
    if (slot == -1 && !PyErr_Occurred())
        board->received++; /* it came by message */
    else if (slot == 0 || slot == 1)
        take(board, (int)slot);
    else {
        PyErr_SetString(PyExc_ValueError, "a board has slots 0 and 1");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef board_methods[] = {
    {"attached", (PyCFunction)board_attached, METH_O, "Tell whether a reader maps the board."},
    {"count", (PyCFunction)board_count, METH_O,
     "Count a message to a reader; return how many parcels went before."},
    {"free", (PyCFunction)board_free, METH_NOARGS, "Tell whether the next slot may be written."},
    {"sent", (PyCFunction)board_sent, METH_NOARGS,
     "Return how many parcels were sent to the reader."},
    {"counts", (PyCFunction)board_counts, METH_NOARGS, "Return the parcels sent to each reader."},
    {"go_on", (PyCFunction)board_go_on, METH_O, "Count on from where another board stopped."},
    {"write", (PyCFunction)board_write, METH_VARARGS,
     "write(number, low, high, layout, buffers): fill a slot; return it, or -1 if none is free."},
    {"post", (PyCFunction)board_post, METH_VARARGS, "post(slot, reader): show a slot to a reader."},
    {"next", (PyCFunction)board_next, METH_NOARGS,
     "Return the slot with the reader's next parcel, complete, or -1."},
    {"content", (PyCFunction)board_content, METH_O,
     "Return number, layout and offset in memory of what is in a slot."},
    {"take", (PyCFunction)board_take, METH_O,
     "Count the next parcel as taken from a slot; -1 if it came by message."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef board_members[] = {
    {"received", T_ULONGLONG, offsetof(Board, received), 0, "Parcels that the reader has got."},
    {"capacity", T_PYSSIZET, offsetof(Board, capacity), READONLY, "Bytes of a slot."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot board_slots[] = {
    {Py_tp_new, board_new},
    {Py_tp_dealloc, board_dealloc},
    {Py_tp_methods, board_methods},
    {Py_tp_members, board_members},
    {Py_tp_doc, "Board(memory, readers, me): see _slots.h."},
    {0, NULL},
};

static PyType_Spec board_spec = {
    "dectool.backends.mpi._board.Board", sizeof(Board), 0, Py_TPFLAGS_DEFAULT, board_slots,
};

static PyTypeObject *board_type; /* never freed */

/* -- a weighted average with the neighbours on the node ---------------------------------------- */

static void exchange_dealloc(Exchange *exchange)
{
    PyTypeObject *type = Py_TYPE((PyObject *)exchange);
    for (Py_ssize_t k = 0; k < exchange->buffers; k++) {
        PyBuffer_Release(&exchange->in[k]);
        PyBuffer_Release(&exchange->out[k]);
    }
    PyMem_Free(exchange->readers);
    PyMem_Free(exchange->weights);
    PyMem_Free(exchange->from);
    Py_XDECREF((PyObject *)exchange->own);
    Py_XDECREF(exchange->boards);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(exchange);
    Py_DECREF(type);
}

static PyObject *exchange_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"own", "destinations", "sources", "weights", "place", "crowded", NULL};
    PyObject *own, *destinations, *sources, *weights;
    Py_ssize_t place;
    int crowded;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!O!np", names, board_type, &own,
                                     &PyTuple_Type, &destinations, &PyTuple_Type, &sources,
                                     &PyTuple_Type, &weights, &place, &crowded))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Exchange *exchange = (Exchange *)allocate(type, 0);
    if (exchange == NULL)
        return NULL;
    Py_INCREF(own);
    Py_INCREF(sources);
    exchange->own = (Board *)own;
    exchange->boards = sources;
    exchange->destinations = PyTuple_Size(destinations);
    exchange->sources = PyTuple_Size(sources);
    exchange->terms = PyTuple_Size(weights);
    exchange->place = place;
    exchange->crowded = crowded;
    exchange->missing = -1;
    if (exchange->terms < 1 || exchange->terms > MOST_TERMS || place >= exchange->terms ||
        exchange->terms != exchange->sources + (place >= 0)) {
        PyErr_SetString(PyExc_ValueError, "there must be 1 to 64 weights: of sources and of self");
        goto fail;
    }
    exchange->readers = PyMem_Calloc((size_t)exchange->destinations + 1, sizeof(Py_ssize_t));
    exchange->weights = PyMem_Calloc((size_t)exchange->terms, sizeof(double));
    exchange->from = PyMem_Calloc((size_t)exchange->sources + 1, sizeof(Source));
    if (!exchange->readers || !exchange->weights || !exchange->from) {
        PyErr_NoMemory();
        goto fail;
    }
    for (Py_ssize_t i = 0; i < exchange->destinations; i++)
        if (!reader_of(exchange->own, PyTuple_GetItem(destinations, i), &exchange->readers[i]))
            goto fail;
    for (Py_ssize_t i = 0; i < exchange->sources; i++) {
        PyObject *board = PyTuple_GetItem(sources, i);
        if (!PyObject_TypeCheck(board, board_type) || ((Board *)board)->me < 0) {
            PyErr_SetString(PyExc_TypeError, "sources must be boards that are read");
            goto fail;
        }
        exchange->from[i].board = (Board *)board;
    }
    for (Py_ssize_t i = 0; i < exchange->terms; i++) {
        exchange->weights[i] = PyFloat_AsDouble(PyTuple_GetItem(weights, i));
        if (exchange->weights[i] == -1.0 && PyErr_Occurred())
            goto fail;
    }
    return (PyObject *)exchange;
fail:
    Py_DECREF(exchange);
    return NULL;
}

static void let_go(Exchange *exchange)
{
    for (Py_ssize_t k = 0; k < exchange->buffers; k++) {
        PyBuffer_Release(&exchange->in[k]);
        PyBuffer_Release(&exchange->out[k]);
    }
    exchange->buffers = 0;
}

static void release_sources(Exchange *exchange)
{
    for (Py_ssize_t i = 0; i < exchange->sources; i++)
        if (exchange->from[i].slot >= 0)
            take(exchange->from[i].board, exchange->from[i].slot);
}

static PyObject *run(Exchange *exchange, int64_t patience)
{
    int state;
    Py_BEGIN_ALLOW_THREADS
    state = advance(exchange, patience);
    Py_END_ALLOW_THREADS
    if (state == DONE) {
        release_sources(exchange);
        let_go(exchange);
    }
    return PyLong_FromLong(state);
}

/* start(number, low, high, layout, kinds, inputs, outputs, patience) */
static PyObject *exchange_start(Exchange *exchange, PyObject *const *args, Py_ssize_t given)
{
    if (given != 8 || !PyTuple_Check(args[4]) || !PyTuple_Check(args[5]) ||
        !PyTuple_Check(args[6])) {
        PyErr_SetString(PyExc_TypeError, "start takes 8 arguments, three of them tuples");
        return NULL;
    }
    Board *own = exchange->own;
    char *layout;
    Py_ssize_t described;
    uint64_t number = PyLong_AsUnsignedLongLong(args[0]);
    uint64_t low = PyLong_AsUnsignedLongLong(args[1]), high = PyLong_AsUnsignedLongLong(args[2]);
    int64_t patience = PyLong_AsLongLong(args[7]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(args[3], &layout, &described) < 0)
        return NULL;
    Py_ssize_t count = PyTuple_Size(args[5]);
    if (count < 1 || count > MOST_BUFFERS || PyTuple_Size(args[4]) != count ||
        PyTuple_Size(args[6]) != count || exchange->buffers != 0) {
        PyErr_SetString(PyExc_ValueError, "1 to 16 buffers, one kind and one output for each");
        return NULL;
    }
    int slot = (int)(own->turn & 1);
    if (!slot_is_free(own, slot))
        return PyLong_FromLong(BUSY);
    size_t size = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        long kind = PyLong_AsLong(PyTuple_GetItem(args[4], k));
        if (kind < 0 || kind >= DECTOOL_KINDS) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no such kind");
            let_go(exchange);
            return NULL;
        }
        exchange->kind[k] = (enum dectool_kind)kind;
        if (PyObject_GetBuffer(PyTuple_GetItem(args[5], k), &exchange->in[k], PyBUF_SIMPLE) < 0) {
            let_go(exchange);
            return NULL;
        }
        if (PyObject_GetBuffer(PyTuple_GetItem(args[6], k), &exchange->out[k], PyBUF_WRITABLE) < 0) {
            PyBuffer_Release(&exchange->in[k]);
            let_go(exchange);
            return NULL;
        }
        exchange->buffers++;
        if (exchange->in[k].len != exchange->out[k].len || exchange->in[k].len == 0) {
            let_go(exchange);
            PyErr_SetString(PyExc_ValueError, "inputs and outputs must have one size, above 0");
            return NULL;
        }
        size += aligned((size_t)exchange->in[k].len);
    }
    if (size + (size_t)described > own->capacity) {
        let_go(exchange);
        return PyLong_FromLong(BUSY);
    }
    exchange->number = number;
    exchange->digest[0] = low;
    exchange->digest[1] = high;
    exchange->size = size;
    exchange->chunk = chunk_of(size);
    exchange->slot = slot;
    exchange->disagree = 0;
    exchange->written = exchange->summed = 0;
    exchange->straight = size > WHOLE ? UINT64_MAX : 0;
    for (Py_ssize_t i = 0; i < exchange->sources; i++) {
        exchange->from[i].slot = -1;
        exchange->from[i].by_message = 0;
        exchange->from[i].available = 0;
    }
    write_head(own, slot, number, low, high, size, exchange->straight, layout, (size_t)described);
    write_chunk(exchange);
    for (Py_ssize_t i = 0; i < exchange->destinations; i++)
        post_to(own, slot, exchange->readers[i]);
    own->turn++;
    return run(exchange, patience);
}

static PyObject *exchange_go_on(Exchange *exchange, PyObject *object)
{
    int64_t patience = PyLong_AsLongLong(object);
    if (patience == -1 && PyErr_Occurred())
        return NULL;
    if (exchange->buffers == 0) {
        PyErr_SetString(PyExc_ValueError, "nothing is under way");
        return NULL;
    }
    return run(exchange, patience);
}

static PyObject *exchange_give(Exchange *exchange, PyObject *args)
{
    Py_ssize_t position;
    PyObject *addresses;
    if (!PyArg_ParseTuple(args, "nO!", &position, &PyTuple_Type, &addresses))
        return NULL;
    if (position < 0 || position >= exchange->sources) {
        PyErr_SetString(PyExc_ValueError, "no such source");
        return NULL;
    }
    Source *source = &exchange->from[position];
    exchange->disagree |= PyTuple_Size(addresses) != exchange->buffers;
    for (Py_ssize_t k = 0; k < exchange->buffers && !exchange->disagree; k++)
        source->data[k] = PyLong_AsVoidPtr(PyTuple_GetItem(addresses, k));
    source->by_message = 1;
    source->available = exchange->size;
    Py_RETURN_NONE;
}

static PyObject *exchange_slots(Exchange *exchange, PyObject *unused)
{
    (void)unused;
    PyObject *slots = PyList_New(exchange->sources);
    for (Py_ssize_t i = 0; slots != NULL && i < exchange->sources; i++)
        PyList_SetItem(slots, i, PyLong_FromLong(exchange->from[i].slot));
    return slots;
}

static PyObject *exchange_finish(Exchange *exchange, PyObject *unused)
{
    (void)unused;
    release_sources(exchange);
    let_go(exchange);
    Py_RETURN_NONE;
}

static PyMethodDef exchange_methods[] = {
    {"start", (PyCFunction)(void (*)(void))exchange_start, METH_FASTCALL,
     "start(number, low, high, layout, kinds, inputs, outputs, patience): begin; see run()."},
    {"go_on", (PyCFunction)exchange_go_on, METH_O, "Go on for so many nanoseconds of waiting."},
    {"give", (PyCFunction)exchange_give, METH_VARARGS,
     "give(position, addresses): use buffers that came by message; none if they do not agree."},
    {"slots", (PyCFunction)exchange_slots, METH_NOARGS,
     "Return the slot of each source's parcel, -1 if it came by message."},
    {"finish", (PyCFunction)exchange_finish, METH_NOARGS, "Take what came, and end."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef exchange_members[] = {
    {"missing", T_PYSSIZET, offsetof(Exchange, missing), READONLY,
     "Position of a source that is waited for."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot exchange_slots_table[] = {
    {Py_tp_new, exchange_new},
    {Py_tp_dealloc, exchange_dealloc},
    {Py_tp_methods, exchange_methods},
    {Py_tp_members, exchange_members},
    {Py_tp_doc, "Exchange(own, destinations, sources, weights, place, crowded): see _exchange.h."},
    {0, NULL},
};

static PyType_Spec exchange_spec = {
    "dectool.backends.mpi._board.Exchange", sizeof(Exchange), 0, Py_TPFLAGS_DEFAULT,
    exchange_slots_table,
};

/* -- the module -------------------------------------------------------------------------------- */

static PyObject *board_memory(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t readers, capacity;
    if (!PyArg_ParseTuple(args, "nn", &readers, &capacity))
        return NULL;
    size_t slot = ((size_t)capacity + PAGE - 1) / PAGE * PAGE;
    return PyLong_FromSize_t(control_size(readers) + 2 * slot);
}

static PyMethodDef methods[] = {
    {"memory", board_memory, METH_VARARGS,
     "memory(readers, capacity): bytes of a board whose slots hold `capacity` bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "dectool.backends.mpi._board", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__board(void)
{
    PyObject *self = PyModule_Create(&module);
    if (self == NULL)
        return NULL;
    board_type = (PyTypeObject *)PyType_FromSpec(&board_spec);
    PyObject *exchange = PyType_FromSpec(&exchange_spec);
    if (board_type == NULL || exchange == NULL)
        return NULL;
    if (PyModule_AddObjectRef(self, "Board", (PyObject *)board_type) < 0 ||
        PyModule_AddObjectRef(self, "Exchange", exchange) < 0)
        return NULL;
    return self;
}
