/* The memory of a board: how a rank hands parcels to the other ranks of its node.

   A board is memory of one rank, its owner, which the other ranks map. It has two slots, used in
   turn, and for every reader a line that the owner writes (what was posted to the reader in which
   slot) and a line that the reader writes (what it has taken). Everything that an owner posts to a
   reader is counted, whether it goes through a slot or by message, so the reader knows which comes
   next. A slot is written again once all its readers have taken what is in it.

   A large parcel is written chunk by chunk. As long as its readers keep up, all chunks go through
   the first bytes of the slot, its ring, which stay in the cache; once one does not, the rest lies
   straight behind, and the owner waits no more. */

#ifndef DECTOOL_SLOTS_H
#define DECTOOL_SLOTS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "_shared.h"
#include "_writer.h"

#define MOST_READERS 1024
#define WHOLE 1048576    /* bytes of the largest parcel that lies straight from the start */
#define CHUNK 131072     /* bytes of a larger one written before they are shown to readers */
#define RING (4 * CHUNK) /* bytes of its slot that are written over while its readers keep up */

typedef struct {
    uint64_t number;    /* of the operation */
    uint64_t digest[2]; /* of what the buffers hold */
    uint64_t size;      /* bytes of data */
    uint64_t layout;    /* bytes of the layout's description, behind the data */
    uint64_t straight;  /* position from which on the data lie straight, and not in the ring */
    uint64_t pad[2];
    uint64_t available; /* bytes of data written so far */
    uint64_t alone[7];
} Head;

typedef struct {
    uint64_t posted[2]; /* count of what is in each slot for this reader, from 1; 0 for nothing */
    uint64_t sent;      /* how many parcels were posted to this reader, in slots or by message */
    uint64_t pad[5];
} Posted;

typedef struct {
    uint64_t taken[2];   /* the last of `posted` that was read */
    uint64_t reading[2]; /* which of `posted` is being read, and how many chunks have been */
    uint64_t attached;   /* whether the reader maps the board */
    uint64_t pad[3];
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
    Writer writer;
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

static uint64_t progress(uint64_t count, size_t chunks) { return count << 32 | (uint32_t)chunks; }

/* Tell whether all readers of a slot are done with so many of its chunks. */
static int chunks_are_read(const Board *board, int slot, size_t chunks)
{
    for (Py_ssize_t i = 0; i < board->listening[slot]; i++) {
        uint32_t reader = board->listeners[slot][i];
        const Taken *by = &board->taken[reader];
        uint64_t count = board->posted[reader].posted[slot], reading = look(&by->reading[slot]);
        if ((reading >> 32 != (uint32_t)count || (uint32_t)reading < chunks) &&
            look(&by->taken[slot]) != count)
            return 0;
    }
    return 1;
}

/* Return the bytes of a parcel that are written before they are shown to readers. */
static size_t chunk_of(size_t size) { return size > WHOLE ? CHUNK : WHOLE / 2; }

/* Return where in its slot the chunk lies that starts at a position of the parcel. */
static size_t place_of(size_t position, uint64_t straight)
{
    return position < straight ? position % RING : position;
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

static void write_head(Board *board, int slot, uint64_t number, uint64_t low, uint64_t high,
                       size_t size, uint64_t straight, const char *layout, size_t described)
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
    head->straight = straight;
    head->available = 0;
    board->listening[slot] = 0;
}

#endif
