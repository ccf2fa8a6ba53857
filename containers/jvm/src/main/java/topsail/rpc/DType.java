package topsail.rpc;

/** What the elements of a value are, by the protocol's numbers. */
public enum DType {
    UINT8(1, 1),
    INT32(2, 4),
    INT64(3, 8),
    FLOAT32(4, 4),
    FLOAT64(5, 8),
    BOOL(6, 1),
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

    /** Bytes of one element; 0 for a text or blob, which has no elements and no dimensions. */
    public final int itemSize;

    DType(int code, int itemSize) {
        this.code = code;
        this.itemSize = itemSize;
    }

    /** The type with this number, or null. */
    static DType of(int code) {
        return code < BY_CODE.length ? BY_CODE[code] : null;
    }
}
