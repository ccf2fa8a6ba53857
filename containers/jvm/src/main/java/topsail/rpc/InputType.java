package topsail.rpc;

import java.util.Map;

/** The type of a model's inputs. */
public enum InputType {
    ANY(0, null),
    BYTES(1, DType.UINT8),
    INTS(2, DType.INT32),
    FLOATS(3, DType.FLOAT32),
    DOUBLES(4, DType.FLOAT64),
    STRINGS(5, DType.STRING),
    TENSORS(6, null);

    private static final Map<String, InputType> BY_NAME = Map.of(
            "bytes", BYTES, "ints", INTS, "integers", INTS, "floats", FLOATS, "doubles", DOUBLES, "strings", STRINGS,
            "tensors", TENSORS);

    public final int code;

    /** In which such an input travels; null for ANY and TENSORS. */
    public final DType dtype;

    InputType(int code, DType dtype) {
        this.code = code;
        this.dtype = dtype;
    }

    /** The type with this name, or null. */
    public static InputType of(String name) {
        return BY_NAME.get(name);
    }

    @Override
    public String toString() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
}
