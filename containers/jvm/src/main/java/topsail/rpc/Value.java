package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * One value of a payload: a tensor, or a text or blob without dimensions.
 *
 * @param name that of a signature's input or output; empty for an app's input
 * @param shape the dimensions; empty for a scalar
 * @param data elements in row-major order, little-endian, each with a u32 length before it if it is a string or bytes; or the
 *     text or blob
 */
public record Value(String name, DType dtype, List<Integer> shape, ByteBuffer data) {
    public static Value text(String name, String text) {
        return new Value(name, DType.STRING, List.of(), ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
    }

    public static Value number(String name, double number) {
        return numbers(name, DType.FLOAT64, List.of(), number);
    }

    /** A tensor of one of the float types, in row-major order. */
    public static Value numbers(String name, DType dtype, List<Integer> shape, double... numbers) {
        ByteBuffer data = room(dtype, numbers.length);
        for (double number : numbers) {
            switch (dtype) {
                case FLOAT16 -> data.putShort(Half.toFloat16((float) number));
                case BFLOAT16 -> data.putShort(Half.toBfloat16((float) number));
                case FLOAT32 -> data.putFloat((float) number);
                case FLOAT64 -> data.putDouble(number);
                default -> throw new IllegalArgumentException(dtype + " is not a type of floats");
            }
        }
        return checked(name, dtype, shape, data);
    }

    /** A tensor of one of the integer types or of bool, in row-major order. A uint64 is given by its 64 bits. */
    public static Value integers(String name, DType dtype, List<Integer> shape, long... integers) {
        ByteBuffer data = room(dtype, integers.length);
        for (long integer : integers) {
            int at = data.position();
            switch (dtype) {
                case BOOL, INT8, UINT8 -> data.put((byte) integer);
                case INT16, UINT16 -> data.putShort((short) integer);
                case INT32, UINT32 -> data.putInt((int) integer);
                case INT64, UINT64 -> data.putLong(integer);
                default -> throw new IllegalArgumentException(dtype + " is not a type of integers");
            }
            if (integer(dtype, data, at) != integer || dtype == DType.BOOL && integer >> 1 != 0) {
                throw new IllegalArgumentException(integer + " does not fit into " + dtype);
            }
        }
        return checked(name, dtype, shape, data);
    }

    /** A tensor of strings, in row-major order. */
    public static Value texts(String name, List<Integer> shape, List<String> texts) {
        return blobs(name, DType.STRING, shape, texts.stream().map(text -> text.getBytes(StandardCharsets.UTF_8)).toList());
    }

    /** A tensor of strings in UTF-8, or of bytes, in row-major order. */
    public static Value blobs(String name, DType dtype, List<Integer> shape, List<byte[]> blobs) {
        if (dtype != DType.STRING && dtype != DType.BYTES) {
            throw new IllegalArgumentException(dtype + " is not strings or bytes");
        }
        if (shape.isEmpty() && blobs.size() == 1) {
            return new Value(name, dtype, shape, ByteBuffer.wrap(blobs.get(0)));
        }
        Encoder data = new Encoder();
        for (byte[] blob : blobs) {
            data.u32(blob.length).bytes(blob);
        }
        return checked(name, dtype, shape, data.done());
    }

    /** A value of JSON, which has no shape. */
    public static Value json(String name, String json) {
        return new Value(name, DType.JSON, List.of(), ByteBuffer.wrap(json.getBytes(StandardCharsets.UTF_8)));
    }

    private static ByteBuffer room(DType dtype, int count) {
        return ByteBuffer.allocate(Math.multiplyExact(dtype.itemSize, count)).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static Value checked(String name, DType dtype, List<Integer> shape, ByteBuffer data) {
        Value value = new Value(name, dtype, List.copyOf(shape), data.rewind());
        String problem = Payload.problem(value);
        if (problem != null) {
            throw new IllegalArgumentException(value.described() + ": " + problem);
        }
        return value;
    }

    /** The same under another name. */
    public Value named(String other) {
        return new Value(other, dtype, shape, data);
    }

    /** How many elements there are; 0 in a text or blob without dimensions. */
    public int size() {
        if (dtype.itemSize > 0) {
            return data.remaining() / dtype.itemSize;
        }
        return shape.isEmpty() ? 0 : shape.stream().reduce(1, (a, b) -> a * b);
    }

    /** An element as a number, of a value of numbers or bools. */
    public double number(int i) {
        return switch (dtype) {
            case FLOAT16 -> Half.ofFloat16(data.getShort(2 * i));
            case BFLOAT16 -> Half.ofBfloat16(data.getShort(2 * i));
            case FLOAT32 -> data.getFloat(4 * i);
            case FLOAT64 -> data.getDouble(8 * i);
            case UINT64 -> unsigned(data.getLong(8 * i));
            default -> integer(i);
        };
    }

    /** An element of a value of integers or bools; of uint64 the 64 bits, so that those above 2^63 come out negative. */
    public long integer(int i) {
        return integer(dtype, data, dtype.itemSize * i);
    }

    private static long integer(DType dtype, ByteBuffer data, int at) {
        return switch (dtype) {
            case UINT8, BOOL -> data.get(at) & 0xFF;
            case INT8 -> data.get(at);
            case INT16 -> data.getShort(at);
            case UINT16 -> data.getShort(at) & 0xFFFF;
            case INT32 -> data.getInt(at);
            case UINT32 -> data.getInt(at) & 0xFFFFFFFFL;
            case INT64, UINT64 -> data.getLong(at);
            default -> throw new IllegalStateException(dtype + " has no integers");
        };
    }

    private static double unsigned(long bits) {
        return bits >= 0 ? bits : 2.0 * (bits >>> 1 | bits & 1); // the lowest bit decides ties
    }

    /** The text of a value of type STRING or JSON without dimensions. */
    public String text() throws CharacterCodingException {
        return text(data);
    }

    /** The elements of a value of strings. */
    public List<String> texts() throws CharacterCodingException {
        List<String> texts = new ArrayList<>();
        for (ByteBuffer element : blobs()) {
            texts.add(text(element));
        }
        return texts;
    }

    /** The elements of a value of strings or bytes, as views; the value itself where it has no dimensions. */
    public List<ByteBuffer> blobs() {
        if (shape.isEmpty()) {
            return List.of(data.duplicate());
        }
        List<ByteBuffer> elements = new ArrayList<>(size());
        int at = 0;
        for (int i = size(); i > 0; i--) {
            int length = data.getInt(at);
            elements.add(data.slice(at + 4, length));
            at += 4 + length;
        }
        return elements;
    }

    private static String text(ByteBuffer utf8) throws CharacterCodingException {
        return StandardCharsets.UTF_8.newDecoder().decode(utf8.duplicate()).toString();
    }

    /** Its type and shape as messages have them, such as float32[2,3]. */
    public String described() {
        return described(dtype, shape);
    }

    /** A type and a shape, whose dimensions may be -1, as messages have them. */
    public static String described(DType dtype, List<Integer> shape) {
        return dtype + (shape.isEmpty() ? "" : shape.toString().replace(" ", ""));
    }
}
