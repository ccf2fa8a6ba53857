package topsail.rpc;

import java.util.Locale;

/** What the elements of a value are, by the protocol's numbers. */
public enum DType {
    UINT8(1, 1),
    INT32(2, 4),
    INT64(3, 8),
    FLOAT32(4, 4),
    FLOAT64(5, 8),
    BOOL(6, 1),
    INT8(7, 1),
    INT16(8, 2),
    UINT16(9, 2),
    UINT32(10, 4),
    UINT64(11, 8),
    FLOAT16(12, 2),
    BFLOAT16(13, 2),
    BYTES(14, 0),
    STRING(16, 0),
    JSON(17, 0),
    OPAQUE(18, 0);

    private static final DType[] BY_CODE = new DType[19];

    static {
        for (DType dtype : values()) {
            BY_CODE[dtype.code] = dtype;
        }
    }

    final int code;

    /** Bytes of one element; 0 for those whose elements differ in length, and for JSON and opaque values, which have none. */
    public final int itemSize;

    DType(int code, int itemSize) {
        this.code = code;
        this.itemSize = itemSize;
    }

    /** The type of a signature's tensor with this name, or null. */
    public static DType of(String name) {
        for (DType dtype : values()) {
            if (dtype != OPAQUE && dtype.toString().equals(name)) {
                return dtype;
            }
        }
        return null;
    }

    /** Whether its values may have dimensions. */
    boolean hasShape() {
        return this != JSON && this != OPAQUE;
    }

    /** The type with this number, or null. */
    static DType of(int code) {
        return code < BY_CODE.length ? BY_CODE[code] : null;
    }

    /** Its name in signatures. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
