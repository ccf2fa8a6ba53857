package topsail.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Tensors of every type: what is written is read again, and hostile bytes are refused. */
class ValueTest {
    private static final int ROUNDS = 20_000;
    private static final List<DType> FLOATS = List.of(DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64);

    /** Some value of a type, and of a random shape if the type may have one. */
    private static Value some(DType dtype, Random random) {
        List<Integer> shape = random.ints(random.nextInt(4), 0, 4).boxed().toList();
        int count = shape.stream().reduce(1, (a, b) -> a * b);
        return switch (dtype) {
            case JSON -> Value.json("x", "{}");
            case OPAQUE -> new Value("x", dtype, List.of(), Value.text("", "opaque").data());
            case STRING -> Value.texts("x", shape, random.ints(count, 0, 0xD800).mapToObj(Character::toString).toList());
            case BYTES -> Value.blobs("x", dtype, shape, Collections.nCopies(count, new byte[] {-1, 0, 7}));
            case BOOL -> Value.integers("x", dtype, shape, random.longs(count, 0, 2).toArray());
            case FLOAT16, BFLOAT16, FLOAT32, FLOAT64 -> Value.numbers("x", dtype, shape, random.doubles(count).toArray());
            default -> Value.integers("x", dtype, shape, random.longs(count, 0, 128).toArray());
        };
    }

    private static Encoder encoded(Value value) {
        Encoder to = new Encoder();
        Payload.encode(to, List.of(value));
        return to;
    }

    /** All elements, by every way that the type has. */
    private static Object elements(Value value) throws CharacterCodingException {
        if (value.dtype() == DType.STRING) {
            return value.texts();
        }
        if (value.dtype().itemSize == 0) {
            return value.blobs();
        }
        Object[] elements = new Object[value.size()];
        Arrays.setAll(elements, i -> FLOATS.contains(value.dtype()) ? (Object) value.number(i) : (Object) value.integer(i));
        return List.of(elements);
    }

    @Test
    void whatIsWrittenIsReadAgain() throws Exception {
        Random random = new Random(1);
        for (int i = 0; i < ROUNDS; i++) {
            Value value = some(DType.values()[i % DType.values().length], random);
            Value read = Payload.decode(new Cursor(encoded(value).done())).get(0);
            assertEquals(value, read);
            assertEquals(elements(value), elements(read));
        }
    }

    /** The bytes are those that the container in Python makes of the same. */
    @Test
    void otherLanguagesWriteTheSameBytes() {
        Encoder to = new Encoder();
        Payload.encode(to, List.of(Value.texts("s", List.of(2), List.of("hi", "é")), Value.numbers("h", DType.FLOAT16, List.of(2), 1.5, -0.1),
                Value.numbers("b", DType.BFLOAT16, List.of(), 0.1), Value.integers("n", DType.UINT64, List.of(), -1),
                Value.blobs("r", DType.BYTES, List.of(), List.of(new byte[] {-1}))));
        byte[] bytes = new byte[to.size()];
        to.done().get(bytes);
        assertEquals("05001001010073020000000c00000002000000686902000000c3a90c010100680200000004000000003e66ae0d0001006202000000cd3d"
                + "0b0001006e08000000ffffffffffffffff0e0001007201000000ff", HexFormat.of().formatHex(bytes));
    }

    @Test
    void tensorsWithSomeBytesChangedAreReadOrRefused() {
        Random random = new Random(2);
        for (int i = 0; i < ROUNDS; i++) {
            ByteBuffer bytes = encoded(some(DType.values()[i % DType.values().length], random)).done();
            for (int changes = random.nextInt(4); changes >= 0; changes--) {
                bytes.put(random.nextInt(bytes.limit()), (byte) (random.nextBoolean() ? random.nextInt(20) : -1));
            }
            bytes.limit(bytes.limit() - random.nextInt(2));
            try {
                for (Value value : Payload.decode(new Cursor(bytes))) {
                    elements(value);
                }
            } catch (ProtocolException e) {
                assertTrue(e.getMessage().contains(" at byte "), e.getMessage());
            } catch (CharacterCodingException e) {
                continue; // which the gateway has refused
            }
        }
    }

    @Test
    void liesAboutElementsAreNamed() {
        refused("the shape [67108864, 67108864, 67108864] needs more elements than 4 bytes have", 1 << 26, 1 << 26, 1 << 26);
        refused("the data go on after the last element", 0);
        refused("the shape [2] needs more elements than 4 bytes have", 2);
        refused("the data end before the last element", 1);
    }

    /** A tensor of strings whose one element promises more than there is. */
    private static void refused(String why, int... shape) {
        Encoder to = new Encoder().u16(1).u8(DType.STRING.code).u8(shape.length).u16(0);
        for (int dimension : shape) {
            to.u32(dimension);
        }
        to.u32(4).u32(0xFFFFFFFFL);
        ProtocolException e = assertThrows(ProtocolException.class, () -> Payload.decode(new Cursor(to.done())));
        assertTrue(e.getMessage().startsWith("value data at byte ") && e.getMessage().endsWith(why), e.getMessage());
    }

    @Test
    void everyFloatOf16BitsIsItsNearest() {
        for (int bits = 0; bits < 1 << 16; bits++) {
            float half = Half.ofFloat16((short) bits);
            float brain = Half.ofBfloat16((short) bits);
            if (!Float.isNaN(half)) {
                assertEquals((short) bits, Half.toFloat16(half));
            }
            if (!Float.isNaN(brain)) {
                assertEquals((short) bits, Half.toBfloat16(brain));
            }
        }
        assertEquals(65504f, Half.ofFloat16((short) 0x7BFF));
        assertEquals(Float.POSITIVE_INFINITY, Half.ofFloat16(Half.toFloat16(65520f)));
        assertEquals((short) 0x3C00, Half.toFloat16(1 + 1f / 2048), "a tie goes to the even one");
        assertEquals((short) 0x3C02, Half.toFloat16(1 + 3f / 2048), "a tie goes to the even one");
        assertEquals((short) 0x3F80, Half.toBfloat16(1 + 1f / 256), "a tie goes to the even one");
        assertTrue(Float.isNaN(Half.ofFloat16(Half.toFloat16(Float.NaN))) && Float.isNaN(Half.ofBfloat16(Half.toBfloat16(Float.NaN))));
    }

    @Test
    void whatDoesNotFitIntoATypeIsNamed() {
        assertEquals("128 does not fit into int8", refused(DType.INT8, 128));
        assertEquals("-1 does not fit into uint32", refused(DType.UINT32, -1));
        assertEquals("2 does not fit into bool", refused(DType.BOOL, 2));
        assertEquals("float32 is not a type of integers", refused(DType.FLOAT32, 2));
        assertEquals("int8: the shape needs 1 bytes, and there are 2", refused(DType.INT8, 1, 2));
    }

    private static String refused(DType dtype, long... integers) {
        return assertThrows(IllegalArgumentException.class, () -> Value.integers("x", dtype, List.of(), integers)).getMessage();
    }

    @Test
    void largeUnsignedIntegersAreRoundedOnce() {
        for (long bits : new long[] {-1, Long.MIN_VALUE, Long.MIN_VALUE + 1025, Long.MIN_VALUE + 1024, Long.MAX_VALUE, 7}) {
            double want = new BigDecimal(new BigInteger(Long.toUnsignedString(bits))).doubleValue();
            assertEquals(want, Value.integers("x", DType.UINT64, List.of(), bits).number(0));
        }
    }
}
