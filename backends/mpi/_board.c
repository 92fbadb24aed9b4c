/* Shared memory between the ranks of a node: a rank writes once, its neighbours read in place.

   A board is memory of one rank, its owner, which the other ranks of the node map. It has two
   slots, used in turn, and for every reader a line that the owner writes (what was posted to the
   reader in which slot) and a line that the reader writes (what it has taken). Everything that an
   owner posts to a reader is counted, whether it goes through a slot or by message, so the reader
   knows which comes next. A slot is written again once all its readers have taken what is in it.

   While the owner writes a slot block by block, readers already sum the blocks that are there. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <structmember.h>

#include "../../dectool/kernels/weighted_sum.h"
#include "_shared.h"

#define MOST_READERS 1024
#define MOST_TERMS 64
#define MOST_BUFFERS 16
#define LARGE (32 << 20) /* bytes from which results go past the cache: they do not stay there */
#define CHUNK 131072 /* bytes written before they are shown to readers */

enum { DONE, WAITING, BUSY, DISAGREE }; /* as in _boards.py */

typedef struct {
    uint64_t number;    /* of the operation */
    uint64_t digest[2]; /* of what the buffers hold */
    uint64_t size;      /* bytes of data */
    uint64_t layout;    /* bytes of the layout's description, behind the data */
    uint64_t pad[3];
    uint64_t available; /* bytes of data written so far */
    uint64_t alone[7];
} Head;

typedef struct {
    uint64_t posted[2]; /* count of what is in each slot for this reader, from 1; 0 for nothing */
    uint64_t sent;      /* how many parcels were posted to this reader, in slots or by message */
    uint64_t pad[5];
} Posted;

typedef struct {
    uint64_t taken[2]; /* the last of `posted` that was read */
    uint64_t attached; /* whether the reader maps the board */
    uint64_t pad[5];
} Taken;

typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    Py_ssize_t readers, me; /* me: the reader that uses this object, or -1 for the owner */
    size_t capacity;
    Head *heads;
    Posted *posted;
    Taken *taken;
    char *data;
    uint64_t received; /* how many parcels the reader has got, in slots or by message */
    uint64_t turn;     /* how often the owner has written a slot */
    uint32_t *listeners[2];
    Py_ssize_t listening[2];
} Board;

static size_t aligned(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static size_t control_size(Py_ssize_t readers)
{
    size_t size = 2 * sizeof(Head) + (size_t)readers * (sizeof(Posted) + sizeof(Taken));
    return (size + PAGE - 1) / PAGE * PAGE;
}

static int slot_is_free(const Board *board, int slot)
{
    for (Py_ssize_t i = 0; i < board->listening[slot]; i++) {
        uint32_t reader = board->listeners[slot][i];
        if (look(&board->taken[reader].taken[slot]) != board->posted[reader].posted[slot])
            return 0;
    }
    return 1;
}

/* Return the slot that holds the reader's next parcel, or -1. */
static int next_slot(const Board *board)
{
    const Posted *posted = &board->posted[board->me];
    for (int slot = 0; slot < 2; slot++)
        if (look(&posted->posted[slot]) == board->received + 1)
            return slot;
    return -1;
}

static void take(Board *board, int slot)
{
    board->received++;
    show(&board->taken[board->me].taken[slot], board->received);
}

static void post_to(Board *board, int slot, Py_ssize_t reader)
{
    board->listeners[slot][board->listening[slot]++] = (uint32_t)reader;
    show(&board->posted[reader].posted[slot], ++board->posted[reader].sent);
}

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

static void write_head(Board *board, int slot, uint64_t number, uint64_t low, uint64_t high,
                       size_t size, const char *layout, size_t described)
{
    Head *head = &board->heads[slot];
    char *place = board->data + (size_t)slot * board->capacity + size;
    int same = head->digest[0] == low && head->digest[1] == high && head->size == size;
    head->number = number;
    head->digest[0] = low;
    head->digest[1] = high;
    head->size = size;
    if (!same || head->layout != described)
        memcpy(place, layout, described);
    head->layout = described;
    head->available = 0;
    board->listening[slot] = 0;
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
        write_head(board, slot, number, low, high, size, layout, (size_t)described);
        char *place = board->data + (size_t)slot * board->capacity;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < count; k++) {
            stream(place, views[k].buf, (size_t)views[k].len);
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
    {Py_tp_doc, "Board(memory, readers, me): see _board.c."},
    {0, NULL},
};

static PyType_Spec board_spec = {
    "dectool.backends.mpi._board.Board", sizeof(Board), 0, Py_TPFLAGS_DEFAULT, board_slots,
};

static PyTypeObject *board_type; /* never freed */

/* -- a weighted average with the neighbours on the node ---------------------------------------- */

typedef struct {
    Board *board;
    int slot;         /* where its parcel is, or -1 while it has not come */
    int by_message;   /* whether the parcel came by message */
    size_t available; /* bytes that may be read */
    const char *data[MOST_BUFFERS];
} Source;

typedef struct {
    PyObject_HEAD
    Board *own;
    PyObject *boards;
    Py_ssize_t destinations, sources, place, terms;
    Py_ssize_t *readers;
    double *weights;
    Source *from;
    int crowded;
    /* the operation under way */
    Py_ssize_t buffers;
    Py_buffer in[MOST_BUFFERS], out[MOST_BUFFERS];
    enum dectool_kind kind[MOST_BUFFERS];
    uint64_t number, digest[2];
    size_t size, written, summed;
    int slot, disagree;
    Py_ssize_t missing; /* position of a source whose parcel has not come */
} Exchange;

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

/* Write the next chunk of one's own value into the slot. */
static void write_chunk(Exchange *exchange)
{
    Board *own = exchange->own;
    char *base = own->data + (size_t)exchange->slot * own->capacity;
    size_t start = 0, end = exchange->written + CHUNK;
    for (Py_ssize_t k = 0; k < exchange->buffers && start < end; k++) {
        size_t length = (size_t)exchange->in[k].len;
        if (exchange->written < start + length) {
            size_t from = exchange->written > start ? exchange->written - start : 0;
            size_t to = end < start + length ? end - start : length;
            stream(base + start + from, (const char *)exchange->in[k].buf + from, to - from);
        }
        start += aligned(length);
    }
    exchange->written = end < exchange->size ? end : exchange->size;
    show(&own->heads[exchange->slot].available, exchange->written);
}

/* Return how many bytes all sources have; set `missing` to the first that has no more. */
static size_t ready_bytes(Exchange *exchange)
{
    size_t ready = exchange->size;
    exchange->missing = -1;
    for (Py_ssize_t i = 0; i < exchange->sources; i++) {
        Source *source = &exchange->from[i];
        if (source->available < exchange->size && !source->by_message) {
            if (source->slot < 0 && (source->slot = next_slot(source->board)) >= 0) {
                const Board *board = source->board;
                const Head *head = &board->heads[source->slot];
                size_t start = 0;
                for (Py_ssize_t k = 0; k < exchange->buffers; k++) {
                    source->data[k] = board->data + (size_t)source->slot * board->capacity + start;
                    start += aligned((size_t)exchange->in[k].len);
                }
                exchange->disagree |= head->number != exchange->number ||
                                      head->digest[0] != exchange->digest[0] ||
                                      head->digest[1] != exchange->digest[1] ||
                                      head->size != exchange->size;
            }
            if (source->slot >= 0) {
                const Head *head = &source->board->heads[source->slot];
                size_t there = (size_t)look(&head->available);
                source->available = there == head->size ? exchange->size : there;
                if (source->available > exchange->size)
                    source->available = exchange->size;
            }
        }
        if (source->available < ready) {
            ready = source->available;
            exchange->missing = i;
        }
    }
    return ready;
}

static void sum_terms(Exchange *exchange, Py_ssize_t buffer, size_t low, size_t size,
                      const void **terms)
{
    enum dectool_kind kind = exchange->kind[buffer];
    char *out = (char *)exchange->out[buffer].buf + low;
    size_t count = (size_t)exchange->terms, item = dectool_itemsize[kind];
    if (exchange->size < LARGE || (uintptr_t)out % 16) {
        dectool_weighted_sum(kind, out, terms, exchange->weights, count, size / item);
        return;
    }
    char part[DECTOOL_BLOCK * 8] __attribute__((aligned(ALIGNMENT)));
    while (size > 0) {
        size_t now = size < sizeof part ? size : sizeof part;
        dectool_weighted_sum(kind, part, terms, exchange->weights, count, now / item);
        stream(out, part, now);
        for (size_t t = 0; t < count; t++)
            terms[t] = (const char *)terms[t] + now;
        out += now;
        size -= now;
    }
}

/* Sum what lies between two positions of the slots. */
static void sum_chunk(Exchange *exchange, size_t from, size_t to)
{
    size_t start = 0;
    for (Py_ssize_t k = 0; k < exchange->buffers && start < to; k++) {
        size_t length = (size_t)exchange->in[k].len;
        if (from < start + length) {
            size_t low = from > start ? from - start : 0;
            size_t high = to < start + length ? to - start : length;
            const void *terms[MOST_TERMS];
            Py_ssize_t source = 0;
            for (Py_ssize_t t = 0; t < exchange->terms; t++)
                terms[t] = (t == exchange->place ? (const char *)exchange->in[k].buf
                                                 : exchange->from[source++].data[k]) + low;
            sum_terms(exchange, k, low, high - low, terms);
        }
        start += aligned(length);
    }
}

static int advance(Exchange *exchange, int64_t patience)
{
    int64_t until = 0;
    for (unsigned turn = 0;; turn++) {
        int moved = 0;
        if (exchange->written < exchange->size) {
            write_chunk(exchange);
            moved = 1;
        }
        size_t ready = ready_bytes(exchange);
        if (exchange->place >= 0 && ready > exchange->written)
            ready = exchange->written; /* what was just read is still in the cache */
        if (ready < exchange->size)
            ready = ready / CHUNK * CHUNK;
        if (ready > exchange->summed) {
            if (!exchange->disagree)
                sum_chunk(exchange, exchange->summed, ready);
            exchange->summed = ready;
            moved = 1;
        }
        if (exchange->summed == exchange->size && exchange->written == exchange->size)
            return exchange->disagree ? DISAGREE : DONE;
        if (moved) {
            until = 0;
            continue;
        }
        relax(turn, exchange->crowded);
        if (turn % 16 == 0) {
            int64_t now = nanoseconds();
            if (until == 0)
                until = now + patience;
            else if (now > until)
                return WAITING;
        }
    }
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
    exchange->slot = slot;
    exchange->disagree = 0;
    exchange->written = exchange->summed = 0;
    for (Py_ssize_t i = 0; i < exchange->sources; i++) {
        exchange->from[i].slot = -1;
        exchange->from[i].by_message = 0;
        exchange->from[i].available = 0;
    }
    write_head(own, slot, number, low, high, size, layout, (size_t)described);
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
    {Py_tp_doc, "Exchange(own, destinations, sources, weights, place, crowded): see _board.c."},
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
