// Plain numbers; the reference is `block/plain.rs`.

struct F32 {
    using At = layout::F32;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        return __uint_as_float(low);
    }
};

struct F16 {
    using At = layout::F16;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        return float_of_f16(low & 0xFFFF);
    }
};

struct BF16 {
    using At = layout::BF16;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        return __uint_as_float(low << 16);
    }
};

struct F64 {
    using At = layout::F64;

    static __device__ __forceinline__ float value(unsigned low, unsigned high)
    {
        return __double2float_rn(__hiloint2double(static_cast<int>(high), static_cast<int>(low)));
    }
};

struct I8 {
    using At = layout::I8;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        return number<SIGNED>(biased(low), 0);
    }
};

struct I16 {
    using At = layout::I16;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        return __int2float_rn(static_cast<short>(low));
    }
};

struct I32 {
    using At = layout::I32;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        return __int2float_rn(static_cast<int>(low));
    }
};

struct I64 {
    using At = layout::I64;

    static __device__ __forceinline__ float value(unsigned low, unsigned high)
    {
        const unsigned long long bits = static_cast<unsigned long long>(high) << 32 | low;
        return __ll2float_rn(static_cast<long long>(bits));
    }
};

struct F8_E4M3 {
    using At = layout::F8_E4M3;

    static __device__ __forceinline__ float value(unsigned low, unsigned)
    {
        // Exponent and mantissa where those of f32 are, then the difference of the biases: exact,
        // also where they are subnormal.
        const float magnitude = __uint_as_float((low & 0x7F) << 20) * 0x1p120f;
        const unsigned bits = (low & 0x7F) == 0x7F ? 0x7FC00000 : __float_as_uint(magnitude);
        return __uint_as_float(bits | (low & 0x80) << 24);
    }
};

KERNELS(convert, F32)
KERNELS(convert, F16)
KERNELS(convert, BF16)
KERNELS(convert, F64)
KERNELS(convert, I8)
KERNELS(convert, I16)
KERNELS(convert, I32)
KERNELS(convert, I64)
KERNELS(convert, F8_E4M3)
