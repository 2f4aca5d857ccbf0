// 4 bits an element that are a floating-point number, E2M1; the reference is `block/fp4.rs`.

__device__ __forceinline__ void scaled(unsigned digits, float scale, float (&y)[4])
{
    numbers<SIGNED>(levels<table::FP4_TWICE>(digits), y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= scale;
    }
}

// Half of the power of two that an E8M0 is, 2^(e - 128).
__device__ __forceinline__ float half_of_e8m0(unsigned e)
{
    // 2^-128 and 2^-127 are subnormal.
    return __uint_as_float(e < 2 ? 0x00200000 << e : (e - 1) << 23);
}

// Half of the number that a UE4M3 is. 0x7F, and not 0xFF, is 0.
__device__ __forceinline__ float half_of_ue4m3(unsigned d)
{
    return d == 0x7F ? 0.0f : __uint_as_float((d & 0x7F) << 20) * 0x1p119f;
}

struct MXFP4 {
    using At = layout::MXFP4;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned digits = block.word<At::qs>(j % 16) >> j / 16 * 4 & 0x0F0F0F0F;
        scaled(digits, half_of_e8m0(block.u8<At::e>()), y);
    }
};

struct NVFP4 {
    using At = layout::NVFP4;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned bytes = block.word<At::qs>(j / 16 * 8 + j % 8);
        const float scale = half_of_ue4m3(block.u8<At::d>(j / 16));
        scaled(bytes >> j / 8 % 2 * 4 & 0x0F0F0F0F, scale, y);
    }
};

KERNELS(dequantize, MXFP4)
KERNELS(dequantize, NVFP4)
