package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** Payloads: lists of named values, in which inputs and outputs travel. */
public final class Payload {
    private static final int MAX_DIMENSIONS = 8;
    private static final int LEAST = 8; // bytes of a value
    private static final int LENGTH = 4; // bytes before an element whose length may differ

    private Payload() {}

    public static void encode(Encoder to, List<Value> values) {
        to.u16(values.size());
        for (Value value : values) {
            byte[] name = Encoder.cut(value.name(), 0xFF);
            to.u8(value.dtype().code).u8(value.shape().size()).u8(name.length).u8(0).bytes(name);
            for (int dimension : value.shape()) {
                to.u32(dimension);
            }
            to.u32(value.data().remaining()).bytes(value.data());
        }
    }

    /** Reads a payload; what stands behind it is left to the caller. The data of its values are views. */
    public static List<Value> decode(Cursor from) throws ProtocolException {
        int count = from.u16("payload count");
        if (count * LEAST > from.left()) {
            throw from.fail("payload count", count + " values are promised and " + from.left() + " bytes are left");
        }
        List<Value> values = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            values.add(value(from));
        }
        return values;
    }

    private static Value value(Cursor from) throws ProtocolException {
        int code = from.u8("value dtype");
        DType dtype = DType.of(code);
        if (dtype == null) {
            throw from.fail("value dtype", code + " is unknown");
        }
        int dimensions = from.u8("value dimensions");
        if (dimensions > (dtype.hasShape() ? MAX_DIMENSIONS : 0)) {
            throw from.fail("value dimensions", dimensions + " are too many for " + dtype);
        }
        int nameLength = from.u8("value name");
        from.u8("value head");
        String name = from.text(nameLength, "value name");
        List<Integer> shape = shape(from, dimensions);
        long size = from.u32("value length");
        if (dtype.itemSize > 0 && size != bytes(dtype.itemSize, shape)) {
            throw from.fail("value length", size + " bytes are not those of " + dtype + " and shape " + shape);
        }
        Value value = new Value(name, dtype, shape, from.take(size, "value data"));
        String problem = problem(value);
        if (problem != null) {
            throw from.fail("value data", problem);
        }
        return value;
    }

    /** Why the data of a value are not what its type and shape say, or null. It needs no memory, whatever they say. */
    public static String problem(Value value) {
        DType dtype = value.dtype();
        ByteBuffer data = value.data().slice().order(ByteOrder.LITTLE_ENDIAN);
        if (dtype.itemSize > 0) {
            long wanted = bytes(dtype.itemSize, value.shape());
            return data.remaining() == wanted ? null : "the shape needs " + wanted + " bytes, and there are " + data.remaining();
        }
        if (value.shape().isEmpty()) {
            return null;
        }
        if (bytes(LENGTH, value.shape()) > data.remaining()) {
            return "the shape " + value.shape() + " needs more elements than " + data.remaining() + " bytes have";
        }
        int at = 0;
        for (int left = value.size(); left > 0; left--) {
            long size = data.remaining() - at < LENGTH ? Long.MAX_VALUE : data.getInt(at) & 0xFFFFFFFFL;
            if (size > data.remaining() - at - LENGTH) {
                return "the data end before the last element";
            }
            at += LENGTH + (int) size;
        }
        return at == data.remaining() ? null : "the data go on after the last element";
    }

    private static List<Integer> shape(Cursor from, int dimensions) throws ProtocolException {
        Integer[] shape = new Integer[dimensions];
        for (int i = 0; i < dimensions; i++) {
            long dimension = from.u32("value shape");
            if (dimension > Frame.MAX) {
                throw from.fail("value shape", "a dimension of " + dimension + " is too large for a frame");
            }
            shape[i] = (int) dimension;
        }
        return List.of(shape);
    }

    /** The bytes of elements of so many each, or more than a frame can hold. */
    private static long bytes(int each, List<Integer> shape) {
        if (shape.contains(0)) {
            return 0;
        }
        long size = each;
        for (int dimension : shape) {
            size = Math.min(size, Frame.MAX + 1L) * dimension; // of two numbers far below 2^32
        }
        return size;
    }
}
