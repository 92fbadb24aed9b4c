/* Weighted sums of flat buffers, block by block.

   The sum starts from +0.0 and runs left to right; every product is rounded before it is added, so
   this must be compiled without fused multiply-add (-ffp-contract=off). Halves are summed in float
   and rounded once. The NumPy functions of _weighted_sum.py give the same bits. */

#ifndef DECTOOL_WEIGHTED_SUM_H
#define DECTOOL_WEIGHTED_SUM_H

#include "numbers.h"

static const size_t dectool_itemsize[DECTOOL_KINDS] = {8, 4, 2, 2};

/* Elements whose running sums stay in the first-level cache. */
#define DECTOOL_BLOCK 2048

/* Two and three terms, the commonest, are summed in registers. */
#define DECTOOL_PLAIN(NAME, TYPE)                                                                  \
    static DECTOOL_WIDE void NAME(TYPE *restrict out, const void *const *terms,                    \
                                  const double *weights, size_t count, size_t start, size_t size)  \
    {                                                                                              \
        const TYPE *restrict a = (const TYPE *)terms[0] + start;                                   \
        const TYPE *restrict b = count > 1 ? (const TYPE *)terms[1] + start : a;                   \
        const TYPE *restrict c = count > 2 ? (const TYPE *)terms[2] + start : a;                   \
        const TYPE p = (TYPE)weights[0];                                                           \
        const TYPE q = count > 1 ? (TYPE)weights[1] : 0;                                           \
        const TYPE r = count > 2 ? (TYPE)weights[2] : 0;                                           \
        if (count == 1)                                                                            \
            for (size_t i = 0; i < size; i++)                                                      \
                out[i] = a[i] * p + (TYPE)0;                                                       \
        else if (count == 2)                                                                       \
            for (size_t i = 0; i < size; i++)                                                      \
                out[i] = (a[i] * p + (TYPE)0) + b[i] * q;                                          \
        else                                                                                       \
            for (size_t i = 0; i < size; i++)                                                      \
                out[i] = ((a[i] * p + (TYPE)0) + b[i] * q) + c[i] * r;                             \
        for (size_t k = 3; k < count; k++) {                                                       \
            const TYPE *restrict term = (const TYPE *)terms[k] + start;                            \
            const TYPE factor = (TYPE)weights[k];                                                  \
            for (size_t i = 0; i < size; i++)                                                      \
                out[i] += term[i] * factor;                                                        \
        }                                                                                          \
    }

#define DECTOOL_HALF(NAME, WIDEN, NARROW)                                                          \
    static DECTOOL_WIDE void NAME(uint16_t *restrict out, const void *const *terms,                \
                                  const double *weights, size_t count, size_t start, size_t size)  \
    {                                                                                              \
        float total[DECTOOL_BLOCK];                                                                \
        const uint16_t *restrict first = (const uint16_t *)terms[0] + start;                       \
        const float weight = (float)weights[0];                                                    \
        for (size_t i = 0; i < size; i++)                                                          \
            total[i] = WIDEN(first[i]) * weight + 0.0f;                                            \
        for (size_t k = 1; k < count; k++) {                                                       \
            const uint16_t *restrict term = (const uint16_t *)terms[k] + start;                    \
            const float factor = (float)weights[k];                                                \
            for (size_t i = 0; i < size; i++)                                                      \
                total[i] += WIDEN(term[i]) * factor;                                               \
        }                                                                                          \
        for (size_t i = 0; i < size; i++)                                                          \
            out[i] = NARROW(total[i]);                                                             \
    }

DECTOOL_PLAIN(dectool_sum_float64, double)
DECTOOL_PLAIN(dectool_sum_float32, float)
DECTOOL_HALF(dectool_sum_float16, dectool_from_float16, dectool_to_float16)
DECTOOL_HALF(dectool_sum_bfloat16, dectool_from_bfloat16, dectool_to_bfloat16)

/* out[i] = sum over k of weights[k] * terms[k][i], for `size` elements of one kind; out is none of
   the terms. */
static void dectool_weighted_sum(enum dectool_kind kind, void *out, const void *const *terms,
                                 const double *weights, size_t count, size_t size)
{
    for (size_t start = 0; start < size; start += DECTOOL_BLOCK) {
        size_t part = size - start < DECTOOL_BLOCK ? size - start : DECTOOL_BLOCK;
        switch (kind) {
        case DECTOOL_FLOAT64:
            dectool_sum_float64((double *)out + start, terms, weights, count, start, part);
            break;
        case DECTOOL_FLOAT32:
            dectool_sum_float32((float *)out + start, terms, weights, count, start, part);
            break;
        case DECTOOL_FLOAT16:
            dectool_sum_float16((uint16_t *)out + start, terms, weights, count, start, part);
            break;
        default:
            dectool_sum_bfloat16((uint16_t *)out + start, terms, weights, count, start, part);
        }
    }
}

#endif
