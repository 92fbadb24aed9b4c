/* Where the ranks of a node meet for collective operations, in memory that they share.

   Each rank has memory that it alone writes: a record for every communicator it is a member of, and
   two buffers for data, used in turn. A blocking collective takes the next slot of its communicator.
   A rank enters a slot with a digest of what it is about to do. When all members have entered and
   all digests are equal, the operation goes through the buffers, in steps that all members take. If
   not, it goes by message, for all members alike, as they all look at the same entries.

   A rank that is kept up elsewhere gives up slots that others wait for: those go by message too, so
   nobody waits here longer than where all goes by message. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "_shared.h"
#include "_writer.h"

#define MOST_RANKS 1024
#define RECORDS 256
#define ENTRIES 4 /* slots that a rank may be ahead of one that has yet to look at its entry */

enum { AGREED, WAITING, BY_MESSAGE, BUSY }; /* as in _hall.py */

typedef struct {
    uint64_t digest[2];
    uint64_t given_up;
    uint64_t buffer; /* of the first step */
} Entry;

/* `shown` and `read` count slots in their upper half and steps of the slot in their lower one. */
typedef struct {
    uint64_t key;   /* of the communicator, never 0 */
    uint64_t shown; /* slot that was entered last, and steps shown in it */
    uint64_t read;  /* slot whose entries, and steps whose buffers, are still needed */
    uint64_t pad[5];
    Entry entries[ENTRIES];
    uint64_t members[MOST_RANKS / 64];
} Record;

typedef struct {
    uint64_t records;
    uint64_t full; /* whether there was no room for a record */
    uint64_t pad[6];
    uint64_t wanted[]; /* for each rank, the communicator in which this rank waits for it */
} Head;

typedef struct {
    int32_t *where;    /* the record of each rank, -1 for one that has not been seen */
    uint32_t *members; /* without this rank */
    Py_ssize_t count;
    uint32_t *awaits; /* whose step this rank waits for */
    Py_ssize_t awaited;
    uint64_t slot;   /* the next one, or the one that is being passed */
    uint64_t steps;  /* written in this slot */
    int inside;      /* whether the slot was entered */
    int wants;       /* whether `wanted` is set for a member */
} Meeting;

typedef struct {
    PyObject_HEAD
    Py_ssize_t ranks, me;
    int crowded;
    size_t capacity;
    Py_buffer *memory;
    Meeting *meetings; /* one for each of this rank's records */
    uint64_t turn;     /* how many buffers were written */
    Writer writer;
    uint64_t filling;             /* the turn whose buffer is being written, */
    size_t filled, filled_before; /* and the bytes in it, and in the one before */
    int64_t used_by[2]; /* the meeting in which a buffer was used last, or -1 */
    uint64_t until[2];  /* its `read` from which on a member no longer needs the buffer */
} Hall;

static const uint64_t SLOT = (uint64_t)1 << 32;

static size_t head_size(Py_ssize_t ranks)
{
    size_t size = sizeof(Head) + (size_t)ranks * sizeof(uint64_t);
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t control_size(Py_ssize_t ranks)
{
    return (head_size(ranks) + RECORDS * sizeof(Record) + PAGE - 1) / PAGE * PAGE;
}

static Head *head_of(const Hall *hall, Py_ssize_t rank) { return (Head *)hall->memory[rank].buf; }

static Record *records_of(const Hall *hall, Py_ssize_t rank)
{
    return (Record *)((char *)hall->memory[rank].buf + head_size(hall->ranks));
}

static int64_t find(const Hall *hall, Py_ssize_t rank, uint64_t key)
{
    uint64_t count = look(&head_of(hall, rank)->records);
    for (uint64_t i = 0; i < count; i++)
        if (records_of(hall, rank)[i].key == key)
            return (int64_t)i;
    return -1;
}

static Record *own_record(const Hall *hall, Py_ssize_t id) { return records_of(hall, hall->me) + id; }

/* Return a member's record, or NULL if it has none yet. */
static Record *record_of(const Hall *hall, Py_ssize_t id, uint32_t member)
{
    int32_t *where = &hall->meetings[id].where[member];
    if (*where < 0)
        *where = (int32_t)find(hall, member, own_record(hall, id)->key);
    return *where < 0 ? NULL : records_of(hall, member) + *where;
}

/* Tell whether all members are done with what was there before `read` reached a value. */
static int all_read(const Hall *hall, Py_ssize_t id, uint64_t value)
{
    const Meeting *meeting = &hall->meetings[id];
    for (Py_ssize_t i = 0; i < meeting->count; i++) {
        const Record *record = record_of(hall, id, meeting->members[i]);
        if (record == NULL ? value > 0 : look(&record->read) < value)
            return 0;
    }
    return 1;
}

static int may_enter(const Hall *hall, Py_ssize_t id, uint64_t slot)
{
    return slot < ENTRIES || all_read(hall, id, (slot - ENTRIES + 1) * SLOT);
}

static int buffer_is_free(const Hall *hall)
{
    int buffer = (int)(hall->turn & 1);
    int64_t id = hall->used_by[buffer];
    return id < 0 || all_read(hall, (Py_ssize_t)id, hall->until[buffer]);
}

static void want(const Hall *hall, Py_ssize_t id, uint32_t member)
{
    show(&head_of(hall, hall->me)->wanted[member], own_record(hall, id)->key);
    hall->meetings[id].wants = 1;
}

static void want_nobody(const Hall *hall, Py_ssize_t id)
{
    Meeting *meeting = &hall->meetings[id];
    for (Py_ssize_t i = 0; meeting->wants && i < meeting->count; i++)
        show(&head_of(hall, hall->me)->wanted[meeting->members[i]], 0);
    meeting->wants = 0;
}

/* Return the number of a new record of this rank, or -1 if there is no room. */
static int64_t new_meeting(Hall *hall, uint64_t key, const uint64_t *members)
{
    Head *head = head_of(hall, hall->me);
    uint64_t id = head->records;
    if (id == RECORDS) {
        show(&head->full, 1);
        return -1;
    }
    Meeting *meeting = &hall->meetings[id];
    meeting->where = PyMem_Calloc((size_t)hall->ranks, sizeof(int32_t));
    meeting->members = PyMem_Calloc((size_t)hall->ranks, sizeof(uint32_t));
    meeting->awaits = PyMem_Calloc((size_t)hall->ranks, sizeof(uint32_t));
    if (meeting->where == NULL || meeting->members == NULL || meeting->awaits == NULL) {
        show(&head->full, 1);
        return -1;
    }
    Record *record = own_record(hall, (Py_ssize_t)id);
    memcpy(record->members, members, sizeof record->members);
    record->key = key;
    for (Py_ssize_t rank = 0; rank < hall->ranks; rank++) {
        meeting->where[rank] = -1;
        if (rank != hall->me && members[rank / 64] >> (rank % 64) & 1)
            meeting->members[meeting->count++] = (uint32_t)rank;
    }
    show(&head->records, id + 1);
    return (int64_t)id;
}

/* Return how many slots a rank has entered or given up. */
static uint64_t entered(const Record *record)
{
    uint64_t shown = look(&record->shown);
    return shown / SLOT + (shown % SLOT != 0);
}

static void give_up(const Hall *hall, Py_ssize_t id, uint64_t slot)
{
    Record *record = own_record(hall, id);
    record->entries[slot % ENTRIES].given_up = 1;
    show(&record->shown, slot * SLOT + 1);
    show(&record->read, (slot + 1) * SLOT);
}

/* Tell whether all members have entered this rank's slot, and mean the same. */
static int agreement(const Hall *hall, Py_ssize_t id)
{
    Meeting *meeting = &hall->meetings[id];
    uint64_t slot = meeting->slot;
    const Entry *mine = &own_record(hall, id)->entries[slot % ENTRIES];
    int missing = 0;
    if (mine->given_up)
        return BY_MESSAGE;
    for (Py_ssize_t i = 0; i < meeting->count; i++) {
        uint32_t member = meeting->members[i];
        const Record *record = record_of(hall, id, member);
        if (record != NULL && entered(record) > slot) {
            const Entry *entry = &record->entries[slot % ENTRIES];
            if (entry->given_up || entry->digest[0] != mine->digest[0] ||
                entry->digest[1] != mine->digest[1])
                return BY_MESSAGE;
        } else if (record == NULL && look(&head_of(hall, member)->full)) {
            /* Its record may have come before it had no more room. */
            if (record_of(hall, id, member) == NULL)
                return BY_MESSAGE;
            missing = 1;
        } else {
            missing = 1;
        }
    }
    return missing ? WAITING : AGREED;
}

/* Tell whether those that are awaited have shown as many steps as this rank. */
static int all_shown(const Hall *hall, Py_ssize_t id)
{
    const Meeting *meeting = &hall->meetings[id];
    uint64_t shown = own_record(hall, id)->shown;
    for (Py_ssize_t i = 0; i < meeting->awaited; i++)
        if (look(&record_of(hall, id, meeting->awaits[i])->shown) < shown)
            return WAITING;
    return AGREED;
}

static int wait_for(int (*state)(const Hall *, Py_ssize_t), const Hall *hall, Py_ssize_t id,
                    int64_t patience)
{
    int64_t until = 0;
    for (unsigned turn = 0;; turn++) {
        int now = state(hall, id);
        if (now != WAITING)
            return now;
        relax(turn, hall->crowded);
        if (turn % 16 == 0) {
            int64_t time = nanoseconds();
            if (until == 0)
                until = time + patience;
            else if (time > until)
                return WAITING;
        }
    }
}

/* Tell whether a buffer was written in the slot that is being passed, and is shown until its end. */
static int belongs_to_slot(const Hall *hall, Py_ssize_t id, int buffer)
{
    return hall->used_by[buffer] == id &&
           hall->until[buffer] == (hall->meetings[id].slot + 1) * SLOT;
}

static int wait_for_agreement(Hall *hall, Py_ssize_t id, int64_t patience)
{
    int state = wait_for(agreement, hall, id, patience);
    const Meeting *meeting = &hall->meetings[id];
    int before = (int)((hall->turn + 1) & 1);
    if (state == BY_MESSAGE && belongs_to_slot(hall, id, before))
        hall->used_by[before] = -1; /* nobody will look at it */
    if (state != WAITING) {
        want_nobody(hall, id);
        return state;
    }
    for (Py_ssize_t i = 0; i < meeting->count; i++) {
        const Record *record = record_of(hall, id, meeting->members[i]);
        if (record == NULL || entered(record) <= meeting->slot)
            want(hall, id, meeting->members[i]);
    }
    return WAITING;
}

static char *buffer_at(const Hall *hall, Py_ssize_t rank, uint64_t turn)
{
    return (char *)hall->memory[rank].buf + control_size(hall->ranks) +
           (turn & 1) * hall->capacity;
}

/* -- the object -------------------------------------------------------------------------------- */

static PyObject *hall_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"memory", "me", "crowded", NULL};
    PyObject *memory;
    Py_ssize_t me;
    int crowded;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!np", names, &PyTuple_Type, &memory, &me,
                                     &crowded))
        return NULL;
    Py_ssize_t ranks = PyTuple_Size(memory);
    if (ranks < 1 || ranks > MOST_RANKS || me < 0 || me >= ranks) {
        PyErr_SetString(PyExc_ValueError, "there must be memory of 1 to 1024 ranks, and me is one");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Hall *hall = (Hall *)allocate(type, 0);
    if (hall == NULL)
        return NULL;
    hall->memory = PyMem_Calloc((size_t)ranks, sizeof(Py_buffer));
    hall->meetings = PyMem_Calloc(RECORDS, sizeof(Meeting));
    if (hall->memory == NULL || hall->meetings == NULL) {
        Py_DECREF(hall);
        return PyErr_NoMemory();
    }
    hall->me = me;
    hall->crowded = crowded;
    hall->used_by[0] = hall->used_by[1] = -1;
    size_t control = control_size(ranks);
    for (; hall->ranks < ranks; hall->ranks++) {
        Py_buffer *view = &hall->memory[hall->ranks];
        if (PyObject_GetBuffer(PyTuple_GetItem(memory, hall->ranks), view, PyBUF_WRITABLE) < 0) {
            Py_DECREF(hall);
            return NULL;
        }
        if ((size_t)view->len < control + 2 * PAGE || view->len != hall->memory[0].len) {
            hall->ranks++;
            PyErr_SetString(PyExc_ValueError, "the memory of all ranks must have one size");
            Py_DECREF(hall);
            return NULL;
        }
    }
    hall->capacity = ((size_t)hall->memory[0].len - control) / 2 / PAGE * PAGE;
    return (PyObject *)hall;
}

static void hall_dealloc(Hall *hall)
{
    PyTypeObject *type = Py_TYPE((PyObject *)hall);
    for (Py_ssize_t id = 0; hall->meetings != NULL && id < RECORDS; id++) {
        PyMem_Free(hall->meetings[id].where);
        PyMem_Free(hall->meetings[id].members);
        PyMem_Free(hall->meetings[id].awaits);
    }
    for (Py_ssize_t rank = 0; rank < hall->ranks; rank++)
        PyBuffer_Release(&hall->memory[rank]);
    PyMem_Free(hall->meetings);
    PyMem_Free(hall->memory);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(hall);
    Py_DECREF(type);
}

static int meeting_of(const Hall *hall, PyObject *object, Py_ssize_t *id, int inside)
{
    *id = PyLong_AsSsize_t(object);
    if (*id == -1 && PyErr_Occurred())
        return 0;
    if (*id < 0 || *id >= (Py_ssize_t)head_of(hall, hall->me)->records) {
        PyErr_SetString(PyExc_ValueError, "no such meeting");
        return 0;
    }
    if (hall->meetings[*id].inside != inside) {
        PyErr_SetString(PyExc_ValueError, inside ? "no slot is entered" : "a slot is entered");
        return 0;
    }
    return 1;
}

static PyObject *hall_meeting(Hall *hall, PyObject *args)
{
    unsigned long long key;
    PyObject *ranks;
    uint64_t members[MOST_RANKS / 64] = {0};
    if (!PyArg_ParseTuple(args, "KO!", &key, &PyTuple_Type, &ranks))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(ranks); i++) {
        Py_ssize_t rank = PyLong_AsSsize_t(PyTuple_GetItem(ranks, i));
        if (rank < 0 || rank >= hall->ranks) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no such rank");
            return NULL;
        }
        members[rank / 64] |= (uint64_t)1 << (rank % 64);
    }
    int64_t id = find(hall, hall->me, key);
    return PyLong_FromLongLong(id >= 0 ? id : new_meeting(hall, key, members));
}

/* Copy an array to an offset in the buffer of a turn. */
static int write_array(Hall *hall, uint64_t turn, PyObject *array, size_t offset)
{
    Py_buffer view;
    if (PyErr_Occurred() || PyObject_GetBuffer(array, &view, PyBUF_SIMPLE) < 0)
        return 0;
    size_t size = (size_t)view.len;
    int fits = offset <= hall->capacity && size <= hall->capacity - offset;
    if (fits) {
        if (turn != hall->filling) {
            hall->filling = turn;
            hall->filled_before = hall->filled;
            hall->filled = 0;
        }
        hall->filled += size;
        size_t most = hall->filled > hall->filled_before ? hall->filled : hall->filled_before;
        write_shared(&hall->writer, buffer_at(hall, hall->me, turn) + offset, view.buf, size,
                     turn > 1 ? 2 * most : 0);
    } else {
        PyErr_SetString(PyExc_ValueError, "an array does not fit into a buffer");
    }
    PyBuffer_Release(&view);
    return fits;
}

/* Copy arrays to offsets in the next buffer. */
static int write_arrays(Hall *hall, Py_ssize_t id, PyObject *arrays, PyObject *offsets)
{
    Py_ssize_t count = PyTuple_Size(arrays);
    Meeting *meeting = &hall->meetings[id];
    if (PyTuple_Size(offsets) != count) {
        PyErr_SetString(PyExc_ValueError, "there must be an offset for each array");
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!write_array(hall, hall->turn, PyTuple_GetItem(arrays, i),
                         PyLong_AsSize_t(PyTuple_GetItem(offsets, i))))
            return 0;
    if (count > 0) {
        int buffer = (int)(hall->turn & 1);
        hall->used_by[buffer] = id;
        hall->until[buffer] = (meeting->slot + 1) * SLOT;
    }
    hall->turn++;
    meeting->steps++;
    return 1;
}

static int tuples(PyObject *const *args, Py_ssize_t first)
{
    if (PyTuple_Check(args[first]) && PyTuple_Check(args[first + 1]))
        return 1;
    PyErr_SetString(PyExc_TypeError, "arrays and offsets must be tuples");
    return 0;
}

/* arrive(meeting, low, high, arrays, offsets, patience) */
static PyObject *hall_arrive(Hall *hall, PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t id;
    if (given != 6) {
        PyErr_SetString(PyExc_TypeError, "arrive takes 6 arguments");
        return NULL;
    }
    uint64_t low = PyLong_AsUnsignedLongLong(args[1]), high = PyLong_AsUnsignedLongLong(args[2]);
    int64_t patience = PyLong_AsLongLong(args[5]);
    if (PyErr_Occurred() || !meeting_of(hall, args[0], &id, 0) || !tuples(args, 3))
        return NULL;
    Meeting *meeting = &hall->meetings[id];
    Record *record = own_record(hall, id);
    if (entered(record) > meeting->slot) { /* it was given up */
        meeting->inside = 1;
        return PyLong_FromLong(BY_MESSAGE);
    }
    if (!may_enter(hall, id, meeting->slot) ||
        (PyTuple_Size(args[3]) > 0 && !buffer_is_free(hall))) {
        for (Py_ssize_t i = 0; i < meeting->count; i++)
            want(hall, id, meeting->members[i]);
        return PyLong_FromLong(BUSY);
    }
    Entry *entry = &record->entries[meeting->slot % ENTRIES];
    meeting->steps = 0;
    entry->buffer = hall->turn & 1;
    if (!write_arrays(hall, id, args[3], args[4]))
        return NULL;
    entry->digest[0] = low;
    entry->digest[1] = high;
    entry->given_up = 0;
    meeting->inside = 1;
    show(&record->shown, meeting->slot * SLOT + 1);
    int state;
    Py_BEGIN_ALLOW_THREADS
    state = wait_for_agreement(hall, id, patience);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(state);
}

static PyObject *hall_look(Hall *hall, PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t id;
    int64_t patience = given == 2 ? PyLong_AsLongLong(args[1]) : -1;
    if (PyErr_Occurred() || given != 2 || !meeting_of(hall, args[0], &id, 1))
        return NULL;
    int state;
    Py_BEGIN_ALLOW_THREADS
    state = wait_for_agreement(hall, id, patience);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(state);
}

/* write(meeting, arrays, offsets) */
static PyObject *hall_write(Hall *hall, PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t id;
    if (given != 3) {
        PyErr_SetString(PyExc_TypeError, "write takes 3 arguments");
        return NULL;
    }
    if (!meeting_of(hall, args[0], &id, 1) || !tuples(args, 1))
        return NULL;
    Record *record = own_record(hall, id);
    int before = (int)((hall->turn + 1) & 1);
    /* The members need the buffer before this one until they have read all that was shown. */
    if (belongs_to_slot(hall, id, before))
        hall->until[before] = record->shown;
    if (PyTuple_Size(args[1]) > 0 && !buffer_is_free(hall))
        Py_RETURN_FALSE;
    if (!write_arrays(hall, id, args[1], args[2]))
        return NULL;
    show(&record->shown, record->shown + 1);
    Py_RETURN_TRUE;
}

/* add(meeting, array, offset) */
static PyObject *hall_add(Hall *hall, PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t id;
    if (given != 3) {
        PyErr_SetString(PyExc_TypeError, "add takes a meeting, an array and an offset");
        return NULL;
    }
    if (!meeting_of(hall, args[0], &id, 1) ||
        !write_array(hall, hall->turn + 1, args[1], PyLong_AsSize_t(args[2])))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *hall_show(Hall *hall, PyObject *object)
{
    Py_ssize_t id;
    if (!meeting_of(hall, object, &id, 1))
        return NULL;
    Record *record = own_record(hall, id);
    show(&record->shown, record->shown + 1);
    Py_RETURN_NONE;
}

/* wait(meeting, ranks, patience) */
static PyObject *hall_wait(Hall *hall, PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t id;
    int64_t patience = given == 3 ? PyLong_AsLongLong(args[2]) : -1;
    if (PyErr_Occurred() || given != 3 || !meeting_of(hall, args[0], &id, 1) ||
        !PyTuple_Check(args[1]) || PyTuple_Size(args[1]) > hall->ranks)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "wait takes ranks");
    Meeting *meeting = &hall->meetings[id];
    meeting->awaited = PyTuple_Size(args[1]);
    for (Py_ssize_t i = 0; i < meeting->awaited; i++) {
        Py_ssize_t rank = PyLong_AsSsize_t(PyTuple_GetItem(args[1], i));
        if (rank < 0 || rank >= hall->ranks || record_of(hall, id, (uint32_t)rank) == NULL)
            return PyErr_Format(PyExc_ValueError, "no such rank");
        meeting->awaits[i] = (uint32_t)rank;
    }
    int state;
    Py_BEGIN_ALLOW_THREADS
    state = wait_for(all_shown, hall, id, patience);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(state);
}

static PyObject *hall_read(Hall *hall, PyObject *object)
{
    Py_ssize_t id;
    if (!meeting_of(hall, object, &id, 1))
        return NULL;
    show(&own_record(hall, id)->read, own_record(hall, id)->shown);
    Py_RETURN_NONE;
}

static PyObject *hall_leave(Hall *hall, PyObject *object)
{
    Py_ssize_t id;
    if (!meeting_of(hall, object, &id, 1))
        return NULL;
    Meeting *meeting = &hall->meetings[id];
    Record *record = own_record(hall, id);
    want_nobody(hall, id);
    meeting->inside = 0;
    meeting->slot++;
    if (record->read < meeting->slot * SLOT)
        show(&record->read, meeting->slot * SLOT);
    Py_RETURN_NONE;
}

static PyObject *hall_buffers(Hall *hall, PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t id;
    char found[MOST_RANKS];
    if (given != 2 || !PyTuple_Check(args[1]) || PyTuple_Size(args[1]) > MOST_RANKS) {
        PyErr_SetString(PyExc_TypeError, "buffers takes a meeting and a tuple of ranks");
        return NULL;
    }
    if (!meeting_of(hall, args[0], &id, 1))
        return NULL;
    const Meeting *meeting = &hall->meetings[id];
    for (Py_ssize_t i = 0; i < PyTuple_Size(args[1]); i++) {
        Py_ssize_t rank = PyLong_AsSsize_t(PyTuple_GetItem(args[1], i));
        const Record *record = rank == hall->me ? own_record(hall, id)
                               : rank >= 0 && rank < hall->ranks
                                   ? record_of(hall, id, (uint32_t)rank)
                                   : NULL;
        if (record == NULL) {
            PyErr_SetString(PyExc_ValueError, "no such rank");
            return NULL;
        }
        const Entry *entry = &record->entries[meeting->slot % ENTRIES];
        found[i] = (char)((entry->buffer + meeting->steps + 1) & 1);
    }
    return PyBytes_FromStringAndSize(found, PyTuple_Size(args[1]));
}

static PyObject *hall_missing(Hall *hall, PyObject *object)
{
    Py_ssize_t id = PyLong_AsSsize_t(object);
    if ((id == -1 && PyErr_Occurred()) || !meeting_of(hall, object, &id, hall->meetings[id].inside))
        return NULL;
    const Meeting *meeting = &hall->meetings[id];
    uint64_t shown = own_record(hall, id)->shown;
    PyObject *missing = PyList_New(0);
    for (Py_ssize_t i = 0; missing != NULL && i < meeting->count; i++) {
        const Record *record = record_of(hall, id, meeting->members[i]);
        if (record != NULL && (meeting->inside ? look(&record->shown) >= shown
                                               : look(&record->read) >= meeting->slot * SLOT))
            continue;
        PyObject *rank = PyLong_FromUnsignedLong(meeting->members[i]);
        if (rank == NULL || PyList_Append(missing, rank) < 0)
            return NULL;
        Py_DECREF(rank);
    }
    return missing;
}

static PyObject *hall_give_way(Hall *hall, PyObject *unused)
{
    (void)unused;
    int given = 0;
    for (Py_ssize_t rank = 0; rank < hall->ranks; rank++) {
        uint64_t key = rank == hall->me ? 0 : look(&head_of(hall, rank)->wanted[hall->me]);
        int64_t theirs = key ? find(hall, rank, key) : -1;
        if (theirs < 0)
            continue;
        const Record *other = records_of(hall, rank) + theirs;
        int64_t id = find(hall, hall->me, key);
        if (id < 0)
            id = new_meeting(hall, key, other->members);
        if (id < 0 || hall->meetings[id].inside)
            continue;
        uint64_t slot = entered(own_record(hall, (Py_ssize_t)id));
        while (slot < entered(other) && may_enter(hall, (Py_ssize_t)id, slot)) {
            give_up(hall, (Py_ssize_t)id, slot++);
            given = 1;
        }
    }
    return PyBool_FromLong(given);
}

static PyMethodDef hall_methods[] = {
    {"meeting", (PyCFunction)hall_meeting, METH_VARARGS,
     "meeting(key, members): return the number of a communicator, or -1 if there is no room."},
    {"arrive", (PyCFunction)(void (*)(void))hall_arrive, METH_FASTCALL,
     "arrive(meeting, low, high, arrays, offsets, patience): write, and enter the next slot."},
    {"look", (PyCFunction)(void (*)(void))hall_look, METH_FASTCALL,
     "look(meeting, patience): wait on for all to enter the slot."},
    {"write", (PyCFunction)(void (*)(void))hall_write, METH_FASTCALL,
     "write(meeting, arrays, offsets): show the next buffer; tell whether it was free."},
    {"add", (PyCFunction)(void (*)(void))hall_add, METH_FASTCALL,
     "add(meeting, array, offset): write into the buffer that was shown."},
    {"show", (PyCFunction)hall_show, METH_O, "Show what was added."},
    {"wait", (PyCFunction)(void (*)(void))hall_wait, METH_FASTCALL,
     "wait(meeting, ranks, patience): wait until these have shown as much as this rank."},
    {"read", (PyCFunction)hall_read, METH_O, "Let the others write over what they have shown."},
    {"leave", (PyCFunction)hall_leave, METH_O, "Be done with the slot."},
    {"buffers", (PyCFunction)(void (*)(void))hall_buffers, METH_FASTCALL,
     "buffers(meeting, ranks): return which of its buffers each rank has shown, 0 or 1."},
    {"missing", (PyCFunction)hall_missing, METH_O, "Return the members that are behind."},
    {"give_way", (PyCFunction)hall_give_way, METH_NOARGS,
     "Give up the slots in which others wait for this rank; tell whether there were any."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot hall_slots[] = {
    {Py_tp_new, hall_new},
    {Py_tp_dealloc, hall_dealloc},
    {Py_tp_methods, hall_methods},
    {Py_tp_doc, "Hall(memory, me, crowded): see _hall.c."},
    {0, NULL},
};

static PyType_Spec hall_spec = {
    "dectool.backends.mpi._hall.Hall", sizeof(Hall), 0, Py_TPFLAGS_DEFAULT, hall_slots,
};

static PyObject *hall_memory(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t ranks, capacity;
    if (!PyArg_ParseTuple(args, "nn", &ranks, &capacity))
        return NULL;
    size_t buffer = ((size_t)capacity + PAGE - 1) / PAGE * PAGE;
    size_t control = control_size(ranks);
    return Py_BuildValue("nn", (Py_ssize_t)(control + 2 * buffer), (Py_ssize_t)control);
}

static PyMethodDef methods[] = {
    {"memory", hall_memory, METH_VARARGS,
     "memory(ranks, capacity): bytes of a rank's memory, and where its buffers begin."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "dectool.backends.mpi._hall", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__hall(void)
{
    PyObject *self = PyModule_Create(&module);
    PyObject *type = PyType_FromSpec(&hall_spec);
    if (self == NULL || type == NULL || PyModule_AddObjectRef(self, "Hall", type) < 0)
        return NULL;
    return self;
}
