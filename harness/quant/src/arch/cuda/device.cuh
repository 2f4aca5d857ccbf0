// What the kernels ask of the machine beyond C++ and CUDA's own functions. Needs sm_80. The tests
// put a model of the machine in place of this file, `tests/cuda/host.h`.

// Numbers of memory: the address is a multiple of the size.
__device__ __forceinline__ unsigned load_u16(const unsigned char *at)
{
    return *reinterpret_cast<const unsigned short *>(at);
}

__device__ __forceinline__ unsigned load_u32(const unsigned char *at)
{
    return *reinterpret_cast<const unsigned *>(at);
}

__device__ __forceinline__ uint2 load_u64(const unsigned char *at)
{
    return *reinterpret_cast<const uint2 *>(at);
}

__device__ __forceinline__ uint4 load_u128(const unsigned char *at)
{
    return *reinterpret_cast<const uint4 *>(at);
}

__device__ __forceinline__ void store_u16(unsigned char *at, unsigned word)
{
    *reinterpret_cast<unsigned short *>(at) = static_cast<unsigned short>(word);
}

__device__ __forceinline__ void store_u32(unsigned char *at, unsigned word)
{
    *reinterpret_cast<unsigned *>(at) = word;
}

__device__ __forceinline__ void store_u128(unsigned char *at, uint4 words)
{
    *reinterpret_cast<uint4 *>(at) = words;
}

// Four of the eight bytes of two words: those that the four low digits of `which` name, each from 0
// to 7. CUDA's `__byte_perm` clears the fourth bit of the digits first, which costs as much again.
__device__ __forceinline__ unsigned permute(unsigned low, unsigned high, unsigned which)
{
    unsigned chosen;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(low), "r"(high), "r"(which));
    return chosen;
}

// The number that 16 bits are in half precision; exact.
__device__ __forceinline__ float float_of_f16(unsigned bits)
{
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(static_cast<unsigned short>(bits)));
    return number;
}

// Two numbers rounded to the nearest in half precision, ties to even; the first in the low bits.
__device__ __forceinline__ unsigned f16x2_of(float first, float second)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

// The same in bfloat16.
__device__ __forceinline__ unsigned bf16x2_of(float first, float second)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
