// 4 bits an element that stand for one of 16 uneven levels; the reference is `block/iq4.rs`.

// `scale·L[q]`
template <class At>
__device__ __forceinline__ void scaled(Block<At> block, unsigned j, float scale, float (&y)[4])
{
    const unsigned bytes = block.template word<At::qs>(j / 32 * 16 + j % 16);
    numbers<SIGNED>(levels<table::IQ4_LEVELS>(bytes >> j / 16 % 2 * 4 & 0x0F0F0F0F), y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= scale;
    }
}

struct IQ4_NL {
    using At = layout::IQ4_NL;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        scaled(block, j, block.f16<At::d>(), y);
    }
};

struct IQ4_XS {
    using At = layout::IQ4_XS;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned i = j / 32;
        const unsigned low = block.u8<At::scales_l>(i / 2) >> i % 2 * 4 & 0xF;
        const unsigned high = block.u16<At::scales_h>() >> i * 2 & 3;
        scaled(block, j, block.f16<At::d>() * number<32>(low | high << 4, 0), y);
    }
};

KERNELS(dequantize, IQ4_NL)
KERNELS(dequantize, IQ4_XS)
