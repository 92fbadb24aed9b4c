/* Averages of the processes of a ring in shared memory, with nothing around them: no Python, no MPI,
   no checks, and readers that never come late. Prints the microseconds of an average, and of a copy
   by all processes at once.

   bare RANKS BYTES CHUNK DEPTH CALLS: chunks of CHUNK bytes go through a ring of DEPTH of them. */

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 64
#define LINE 8 /* counters of 8 bytes in a line of the cache */
#define BLOCKS 31
#define WARM 2

static uint64_t *written, *summed, *arrived, meetings;
static double *times; /* of each process */
static char *memory;
static int ranks, me, cores;

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static uint64_t look(const uint64_t *counters, int rank)
{
    return __atomic_load_n(counters + rank * LINE, __ATOMIC_ACQUIRE);
}

static void show(uint64_t *counters, uint64_t value)
{
    __atomic_store_n(counters + me * LINE, value, __ATOMIC_RELEASE);
}

static void rest(void)
{
    if (ranks > cores)
        sched_yield();
}

static void barrier(void)
{
    show(arrived, ++meetings);
    for (int rank = 0; rank < ranks; rank++)
        while (look(arrived, rank) < meetings)
            rest();
}

static void average(float *restrict out, const float *restrict a, const float *restrict b,
                    const float *restrict c, size_t size)
{
    if (c == NULL)
        for (size_t i = 0; i < size; i++)
            out[i] = a[i] * 0.5f + b[i] * 0.5f;
    else
        for (size_t i = 0; i < size; i++)
            out[i] = a[i] * 0.25f + b[i] * 0.25f + c[i] * 0.5f;
}

/* Wait for all and return the longest that any has taken since its `start`: one that had no core
   when all were let go has a late start. */
static double longest(double start)
{
    double most = 0;
    barrier();
    times[me * LINE] = microseconds() - start;
    barrier();
    for (int rank = 0; rank < ranks; rank++)
        most = times[rank * LINE] > most ? times[rank * LINE] : most;
    barrier();
    return most;
}

/* Average once; `done` chunks have gone through the rings before. */
static void exchange(char *out, const char *own, size_t bytes, size_t chunk, uint64_t depth,
                     uint64_t done)
{
    int left = (me + ranks - 1) % ranks, right = (me + 1) % ranks;
    uint64_t chunks = bytes / chunk, put = 0, got = 0;
    size_t ring = depth * chunk;
    while (got < chunks) {
        int moved = 0;
        uint64_t next = done + put;
        if (put < chunks && look(summed, left) + depth > next && look(summed, right) + depth > next) {
            memcpy(memory + (size_t)me * ring + next % depth * chunk, own + put++ * chunk, chunk);
            show(written, next + 1);
            moved = 1;
        }
        next = done + got;
        if (got < put && look(written, left) > next && look(written, right) > next) {
            const char *place = memory + next % depth * chunk;
            average((float *)(out + got * chunk), (const float *)(own + got * chunk),
                    (const float *)(place + (size_t)left * ring),
                    ranks == 2 ? NULL : (const float *)(place + (size_t)right * ring), chunk / 4);
            got++;
            show(summed, next + 1);
            moved = 1;
        }
        if (!moved)
            rest();
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, BLOCKS, sizeof *values, ascending);
    return values[BLOCKS / 2];
}

int main(int count, char **words)
{
    if (count != 6 || (ranks = atoi(words[1])) < 2 || ranks > MOST)
        return 2;
    size_t bytes = (size_t)atol(words[2]), chunk = (size_t)atol(words[3]);
    uint64_t depth = (uint64_t)atol(words[4]), done = 0;
    int calls = atoi(words[5]);
    cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    size_t counters = sizeof(uint64_t) * LINE * MOST, size = 4 * counters + (size_t)ranks * depth * chunk;
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    memset(shared, 0, size);
    written = (uint64_t *)shared;
    summed = (uint64_t *)(shared + counters);
    arrived = (uint64_t *)(shared + 2 * counters);
    times = (double *)(shared + 3 * counters);
    memory = shared + 4 * counters;
    for (int rank = 1; rank < ranks && me == 0; rank++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            me = rank;
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* or it would wait for the others for ever */
        }
    }
    char *x = aligned_alloc(4096, bytes), *out = aligned_alloc(4096, bytes), *swap;
    memset(x, 0, bytes);
    memset(out, 0, bytes);
    double averages[BLOCKS], copies[BLOCKS], start = 0;
    for (int block = 0; block < BLOCKS; block++) {
        for (int call = -WARM; call < calls; call++, swap = x, x = out, out = swap) {
            if (call == 0) {
                barrier();
                start = microseconds();
            }
            memcpy(out, x, bytes);
        }
        copies[block] = longest(start) / calls;
        for (int call = -WARM; call < calls; call++, swap = x, x = out, out = swap) {
            if (call == 0) {
                barrier();
                start = microseconds();
            }
            exchange(out, x, bytes, chunk, depth, done);
            done += bytes / chunk;
        }
        averages[block] = longest(start) / calls;
    }
    if (me == 0) {
        printf("%.3f %.3f\n", median(averages), median(copies));
        while (wait(NULL) > 0)
            ;
    }
    return 0;
}
