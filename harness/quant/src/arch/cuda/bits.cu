// One or two bits an element and one scale; the reference is `block/bits.rs`.

struct Q1_0 {
    using At = layout::Q1_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned d = __float_as_uint(block.f16<At::d>());
        const unsigned negative = ~block.u8<At::qs>(j / 8) >> j % 8;
        for (unsigned k = 0; k < 4; k++) {
            y[k] = __uint_as_float(d ^ (negative << (31 - k) & 0x80000000));
        }
    }
};

struct Q2_0 {
    using At = layout::Q2_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const float d = block.f16<At::d>();
        // Four times two bits of a byte, to a byte each.
        const unsigned all = block.u8<At::qs>(j / 4);
        const unsigned halves = (all | all << 12) & 0x000F000F;
        numbers<1>((halves | halves << 6) & 0x03030303, y);
        for (unsigned k = 0; k < 4; k++) {
            y[k] *= d;
        }
    }
};

KERNELS(dequantize, Q1_0)
KERNELS(dequantize, Q2_0)
