/* A weighted average of one's own value and those of neighbours on the node.

   A rank writes its value once, into its board, and sums its neighbours' values where they are. While
   the owner of a board writes a slot chunk by chunk, readers already sum the chunks that are there. */

#ifndef DECTOOL_EXCHANGE_H
#define DECTOOL_EXCHANGE_H

#include "../../dectool/kernels/weighted_sum.h"
#include "_slots.h"

#define MOST_TERMS 64
#define MOST_BUFFERS 16
#define KEEPING_UP 20000          /* nanoseconds that the owner of a ring waits for its readers */
#define CROWDED_KEEPING_UP 300000 /* the same where these may be waiting for a core */

enum { DONE, WAITING, BUSY, DISAGREE }; /* as in _boards.py */

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
    size_t size, chunk, written, summed;
    uint64_t straight;
    int slot, disagree;
    Py_ssize_t missing; /* position of a source whose parcel has not come */
} Exchange;

/* Tell whether the next chunk has a place that no reader needs. */
static int may_write(const Exchange *exchange)
{
    return exchange->written < RING || exchange->written >= exchange->straight ||
           chunks_are_read(exchange->own, exchange->slot, (exchange->written - RING) / CHUNK + 1);
}

/* Write the next chunk of one's own value into the slot. */
static void write_chunk(Exchange *exchange)
{
    Board *own = exchange->own;
    size_t place = place_of(exchange->written, exchange->straight);
    char *chunk = own->data + (size_t)exchange->slot * own->capacity + place;
    size_t every_time = exchange->size > WHOLE ? RING : exchange->size;
    int again = place < every_time && own->turn > 2; /* else its pages may be new */
    size_t extent = again ? 2 * every_time : 0;
    size_t start = 0, end = exchange->written + exchange->chunk;
    for (Py_ssize_t k = 0; k < exchange->buffers && start < end; k++) {
        size_t length = (size_t)exchange->in[k].len;
        if (exchange->written < start + length) {
            size_t from = exchange->written > start ? exchange->written - start : 0;
            size_t to = end < start + length ? end - start : length;
            write_shared(&own->writer, chunk + (start + from - exchange->written),
                         (const char *)exchange->in[k].buf + from, to - from, extent);
        }
        start += aligned(length);
    }
    exchange->written = end < exchange->size ? end : exchange->size;
    show(&own->heads[exchange->slot].available, exchange->written);
}

/* Go on without waiting for readers. */
static void go_straight(Exchange *exchange)
{
    exchange->straight = exchange->written;
    show(&exchange->own->heads[exchange->slot].straight, exchange->straight);
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

/* Return where a source has the byte `low` of a buffer, in the chunk that starts at a position. */
static const void *term_of(const Source *source, Py_ssize_t buffer, size_t low, size_t position)
{
    const char *straight = source->data[buffer] + low;
    if (source->by_message)
        return straight;
    uint64_t from = look(&source->board->heads[source->slot].straight);
    return straight + place_of(position, from) - position;
}

/* Sum a chunk, which lies between two positions of the slots. */
static void sum_chunk(Exchange *exchange, size_t from, size_t to)
{
    size_t start = 0;
    for (Py_ssize_t k = 0; k < exchange->buffers && start < to; k++) {
        size_t length = (size_t)exchange->in[k].len;
        if (from < start + length) {
            size_t low = from > start ? from - start : 0;
            size_t high = to < start + length ? to - start : length;
            const void *terms[MOST_TERMS];
            const Source *source = exchange->from;
            for (Py_ssize_t t = 0; t < exchange->terms; t++)
                terms[t] = t == exchange->place ? (const char *)exchange->in[k].buf + low
                                                : term_of(source++, k, low, from);
            dectool_weighted_sum(exchange->kind[k], (char *)exchange->out[k].buf + low, terms,
                                 exchange->weights, (size_t)exchange->terms,
                                 (high - low) / dectool_itemsize[exchange->kind[k]]);
        }
        start += aligned(length);
    }
}

/* Let the sources of a large parcel write over a chunk that was summed. */
static void show_progress(const Exchange *exchange, size_t chunks)
{
    for (Py_ssize_t i = 0; i < exchange->sources && exchange->size > WHOLE; i++) {
        const Source *source = &exchange->from[i];
        if (!source->by_message) {
            const Board *board = source->board;
            show(&board->taken[board->me].reading[source->slot],
                 progress(board->received + 1, chunks));
        }
    }
}

static int advance(Exchange *exchange, int64_t patience)
{
    const int64_t keeping_up = exchange->crowded ? CROWDED_KEEPING_UP : KEEPING_UP;
    int64_t still = 0; /* since when nothing moves */
    for (unsigned turn = 0;; turn++) {
        int moved = 0, full = 0;
        if (exchange->written < exchange->size) {
            full = !may_write(exchange);
            if (!full)
                write_chunk(exchange);
            moved = !full;
        }
        size_t ready = ready_bytes(exchange);
        if (exchange->place >= 0 && ready > exchange->written)
            ready = exchange->written; /* what was just read is still in the cache */
        if (ready < exchange->size)
            ready = ready / exchange->chunk * exchange->chunk;
        if (ready > exchange->summed) {
            size_t to = exchange->summed + exchange->chunk;
            if (to > ready)
                to = ready;
            if (!exchange->disagree) {
                sum_chunk(exchange, exchange->summed, to);
                show_progress(exchange, to / CHUNK);
            }
            exchange->summed = to;
            moved = 1;
        }
        if (exchange->summed == exchange->size && exchange->written == exchange->size)
            return exchange->disagree ? DISAGREE : DONE;
        if (moved) {
            still = 0;
            continue;
        }
        relax(turn, exchange->crowded);
        if (turn % 16 == 0) {
            int64_t now = nanoseconds();
            if (still == 0)
                still = now;
            else if (full && now - still > keeping_up)
                go_straight(exchange);
            else if (!full && now - still > patience)
                return WAITING;
        }
    }
}

#endif
