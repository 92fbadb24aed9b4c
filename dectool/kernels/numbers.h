/* Numbers as their bits, and conversions between formats.

   Everything here is elementwise and rounds each operation on its own, so it must be compiled
   without fused multiply-add: -ffp-contract=off, or --fmad=false for NVRTC, which reads it too. */

#ifndef DECTOOL_NUMBERS_H
#define DECTOOL_NUMBERS_H

#ifdef __CUDACC_RTC__

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef long long int64_t;
#define DECTOOL_INLINE static __device__ __forceinline__

#else

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define DECTOOL_INLINE static inline

/* Both sides of a choice are computed. Without this GCC moves an addition under its condition, to
   raise no needless floating-point exception, and then cannot vectorise. No value depends on it. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

/* Loops are compiled for several widths of vectors, chosen when loaded. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define DECTOOL_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DECTOOL_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define DECTOOL_WIDE
#endif

#endif

enum dectool_kind {
    DECTOOL_FLOAT64,
    DECTOOL_FLOAT32,
    DECTOOL_FLOAT16,
    DECTOOL_BFLOAT16,
    DECTOOL_KINDS
};

DECTOOL_INLINE uint32_t dectool_bits_float32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DECTOOL_INLINE uint64_t dectool_bits_float64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DECTOOL_INLINE float dectool_of_bits_float32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

DECTOOL_INLINE double dectool_of_bits_float64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

DECTOOL_INLINE float dectool_from_bfloat16(uint16_t half)
{
    return dectool_of_bits_float32((uint32_t)half << 16);
}

DECTOOL_INLINE uint16_t dectool_to_bfloat16(float value)
{
    uint32_t bits = dectool_bits_float32(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

DECTOOL_INLINE float dectool_from_float16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    uint32_t bits = (magnitude << 13) + (112u << 23);
    bits += magnitude >= 0x7c00u ? 112u << 23 : 0u;
    uint32_t small = dectool_bits_float32((float)(int32_t)magnitude * 0x1p-24f);
    return dectool_of_bits_float32((magnitude < 0x0400u ? small : bits) | sign);
}

DECTOOL_INLINE uint16_t dectool_to_float16(float value)
{
    uint32_t bits = dectool_bits_float32(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    /* 0.5 has a unit in the last place of 2^-24, the smallest half: the sum rounds to it. */
    uint32_t small = dectool_bits_float32(dectool_of_bits_float32(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
    uint32_t half = magnitude < 0x38800000u ? small : normal;
    half = magnitude >= 0x47800000u ? special : half;
    return (uint16_t)(half | sign);
}

#endif
