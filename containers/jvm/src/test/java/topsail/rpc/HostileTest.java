package topsail.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Bytes of a side that means no good. Whatever comes, it ends in a value or in a ProtocolException. */
class HostileTest {
    private static final int ROUNDS = 20_000;

    @Test
    void garbageIsReadOrRefused() {
        Random random = new Random(1);
        for (int i = 0; i < ROUNDS; i++) {
            byte[] bytes = new byte[random.nextInt(200)];
            random.nextBytes(bytes);
            decodeAll(ByteBuffer.wrap(bytes));
        }
    }

    @Test
    void goodFramesWithSomeBytesChangedAreReadOrRefused() {
        Random random = new Random(2);
        List<Golden> all = Golden.all();
        for (int i = 0; i < ROUNDS; i++) {
            byte[] bytes = all.get(random.nextInt(all.size())).bytes().clone();
            for (int changes = random.nextInt(4); changes >= 0; changes--) {
                bytes[random.nextInt(bytes.length)] = switch (random.nextInt(3)) {
                    case 0 -> (byte) random.nextInt();
                    case 1 -> -1;
                    default -> 0;
                };
            }
            ByteBuffer cut = ByteBuffer.wrap(bytes, Frame.HEADER, random.nextInt(bytes.length - Frame.HEADER + 1));
            decodeAll(cut.slice());
            stream(bytes, random);
        }
    }

    private static void decodeAll(ByteBuffer body) {
        List<Decoder> decoders = List.of(b -> Hello.decode(b), b -> Predict.decode(b), b -> new Frame(Kind.PING, 0, b).nonce(),
                b -> new Frame(Kind.BYE, 0, b).reason());
        for (Decoder decoder : decoders) {
            try {
                decoder.decode(body.duplicate());
            } catch (ProtocolException e) {
                assertTrue(e.getMessage().contains(" at byte "), e.getMessage());
            }
        }
    }

    private interface Decoder {
        Object decode(ByteBuffer body) throws ProtocolException;
    }

    /** In pieces of any size, and twice. */
    private static void stream(byte[] bytes, Random random) {
        Assembler assembler = new Assembler();
        try {
            for (int at = 0; at < 2 * bytes.length; ) {
                ByteBuffer room = assembler.room();
                assertTrue(room.hasRemaining());
                int piece = Math.min(1 + random.nextInt(9), room.remaining());
                for (int i = 0; i < piece && at < 2 * bytes.length; i++, at++) {
                    room.put(bytes[at % bytes.length]);
                }
                while (assembler.next() != null) {
                    // whatever it is
                }
            }
        } catch (ProtocolException e) {
            assertTrue(e.getMessage().contains(" at byte "), e.getMessage());
        }
    }

    @Test
    void noMemoryIsTakenForWhatIsOnlyPromised() throws ProtocolException {
        Assembler assembler = new Assembler();
        assembler.room().put(header(Frame.MAX));
        for (int i = 0; i < 100; i++) {
            assertNull(assembler.next());
            assertTrue(assembler.room().capacity() <= 64 << 10);
            assembler.room().put(new byte[100]);
        }
        assembler = new Assembler();
        assembler.room().put(header(Frame.MAX + 1));
        assertEquals("frame size at byte 0: 67108865 bytes are more than the 67108864 allowed",
                assertThrows(ProtocolException.class, assembler::next).getMessage());
    }

    @Test
    void aSmallHeapAcceptsSmallFrames() {
        assertEquals(6 << 20, Frame.accepted(96 << 20));
        assertEquals(65536, Frame.accepted(1), "which the protocol has as the least");
        assertEquals(64 << 20, Frame.accepted(Long.MAX_VALUE));
    }

    @Test
    void aLargeFrameComesWholeAndItsMemoryGoes() throws ProtocolException {
        int size = 3_000_000;
        Assembler assembler = new Assembler();
        assembler.room().put(header(size));
        for (int left = size; left > 0; ) {
            assertNull(assembler.next());
            ByteBuffer room = assembler.room();
            int piece = Math.min(left, room.remaining());
            room.put(new byte[piece]);
            left -= piece;
        }
        assertEquals(size, assembler.next().body().remaining());
        assertEquals(64 << 10, assembler.room().capacity());
    }

    @Test
    void liesAboutCountsAndLengthsAreNamed() {
        refused("predict count at byte 16: 4294967295 entries are promised and 0 bytes are left", to -> to.u64(1).u32(1).u32(-1));
        refused("predict count at byte 16: 0 is not from 1 to 65536", to -> to.u64(1).u32(1).u32(0));
        refused("predict entry at byte 20: 99 bytes are promised and 6 are left",
                to -> to.u64(1).u32(1).u32(1).u32(99).u32(0).u16(1));
        refused("payload count at byte 26: 9 values are promised and 0 bytes are left", input(to -> to.u16(9)));
        refused("value dtype at byte 27: 77 is unknown", input(to -> to.u16(1).u8(77).u8(0).u16(0).u32(0)));
        refused("value dimensions at byte 28: 1 are too many for json", input(to -> to.u16(1).u8(17).u8(1).u16(0).u32(0)));
        refused("value length at byte 50: 8 bytes are not those of float64 and shape [67108864, 67108864, 67108864, 67108864]",
                input(to -> to.u16(1).u8(5).u8(4).u16(0).u32(1 << 26).u32(1 << 26).u32(1 << 26).u32(1 << 26).u32(8).u64(0)));
        refused("value shape at byte 34: a dimension of 4294967295 is too large for a frame",
                input(to -> to.u16(1).u8(5).u8(1).u16(0).u32(-1).u32(8).u64(0)));
        refused("predict at byte 34: 1 bytes follow the end",
                to -> input(b -> b.u16(1).u8(16).u8(0).u16(0).u32(0)).write(to).u8(0));
    }

    private interface Writer {
        Encoder write(Encoder to);
    }

    /** A PREDICT of one input with this payload. */
    private static Writer input(Writer payload) {
        return to -> {
            int mark = to.u64(1).u32(1).u32(1).begin();
            return payload.write(to.u32(0)).end(mark);
        };
    }

    private static void refused(String message, Writer body) {
        ByteBuffer bytes = body.write(new Encoder()).done();
        assertEquals(message, assertThrows(ProtocolException.class, () -> Predict.decode(bytes)).getMessage());
    }

    private static ByteBuffer header(long size) {
        return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putInt((int) size).put((byte) Kind.PREDICT).rewind();
    }
}
