package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * One value of a payload: a tensor, or a text or blob without dimensions.
 *
 * @param name empty for an app's input
 * @param data elements in row-major order, little-endian; or the text or blob
 */
public record Value(String name, DType dtype, List<Integer> shape, ByteBuffer data) {
    public static Value text(String name, String text) {
        return new Value(name, DType.STRING, List.of(), ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
    }

    public static Value number(String name, double number) {
        ByteBuffer data = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(0, number);
        return new Value(name, DType.FLOAT64, List.of(), data);
    }

    /** How many elements there are; 0 in a text or blob. */
    public int size() {
        return dtype.itemSize == 0 ? 0 : data.remaining() / dtype.itemSize;
    }

    /** An element as a number, of a value that has elements. */
    public double number(int i) {
        return switch (dtype) {
            case UINT8, BOOL -> data.get(i) & 0xFF;
            case INT32 -> data.getInt(4 * i);
            case INT64 -> data.getLong(8 * i);
            case FLOAT32 -> data.getFloat(4 * i);
            case FLOAT64 -> data.getDouble(8 * i);
            default -> throw new IllegalStateException(dtype + " has no elements");
        };
    }

    /** The text of a value of type STRING or JSON. */
    public String text() throws CharacterCodingException {
        return StandardCharsets.UTF_8.newDecoder().decode(data.duplicate()).toString();
    }
}
