package topsail.rpc;

/** Floats of 16 bits, which Java 17 does not know: float16, which is IEEE 754's binary16, and bfloat16, the upper half of a float. */
final class Half {
    private static final int BIAS = 112; // between the exponents of float and float16
    private static final int INFINITE = 0x7F800000; // as the bits of a float

    private Half() {}

    /** The number that a float16 means. */
    static float ofFloat16(short bits) {
        int sign = (bits & 0x8000) << 16;
        int exponent = bits >> 10 & 0x1F;
        int mantissa = bits & 0x3FF;
        if (exponent == 0x1F) { // infinite, or not a number
            return Float.intBitsToFloat(sign | INFINITE | mantissa << 13);
        }
        if (exponent > 0) {
            return Float.intBitsToFloat(sign | exponent + BIAS << 23 | mantissa << 13);
        }
        float small = mantissa / (float) (1 << 24);
        return sign == 0 ? small : -small;
    }

    /** The float16 nearest to a number, ties to even; what is too large becomes infinite. */
    static short toFloat16(float number) {
        int bits = Float.floatToIntBits(number);
        int sign = bits >>> 16 & 0x8000;
        int exponent = (bits >> 23 & 0xFF) - BIAS;
        int mantissa = bits & 0x7FFFFF;
        if (Float.isNaN(number)) {
            return (short) (sign | 0x7E00);
        }
        if (exponent >= 0x1F) {
            return (short) (sign | 0x7C00);
        }
        if (exponent <= -11) { // below half of the smallest
            return (short) sign;
        }
        int shift = 13;
        if (exponent <= 0) { // subnormal: the leading one becomes part of the mantissa
            mantissa |= 0x800000;
            shift = 14 - exponent;
            exponent = 0;
        }
        int half = (exponent << 10) + (mantissa >> shift);
        int rest = mantissa & (1 << shift) - 1;
        int tie = 1 << shift - 1;
        boolean up = rest > tie || rest == tie && (half & 1) == 1;
        return (short) (sign | half + (up ? 1 : 0)); // a carry into the exponent is right
    }

    /** The number that a bfloat16 means. */
    static float ofBfloat16(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /** The bfloat16 nearest to a number, ties to even. */
    static short toBfloat16(float number) {
        int bits = Float.floatToIntBits(number); // of what is not a number always the same
        return (short) (Float.isNaN(number) ? bits >> 16 : bits + 0x7FFF + (bits >> 16 & 1) >> 16);
    }
}
