package topsail.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import topsail.rpc.Announcement.State;
import topsail.rpc.Predict.Input;

/** What a container reads and writes, byte for byte. */
class GoldenTest {
    private static final Value DOUBLES = tensor("", DType.FLOAT64, List.of(2), "000000000000f83f00000000000000c0");

    /** What is read. */
    private static final Map<String, Object> READ = Map.ofEntries(
            Map.entry("hello", new Hello(0, Hello.GATEWAY, 1, 64 << 20, "gw", "tok", "s/1")),
            Map.entry("hello without fields", new Hello(0, Hello.CONTAINER, 0, 65536, "", "", "")),
            Map.entry("predict doubles", new Predict(7, 1, List.of(new Input(25000, List.of(DOUBLES))))),
            Map.entry("predict several inputs", new Predict(0x0102030405060708L, 5, List.of(
                    new Input(Predict.NO_DEADLINE, List.of(tensor("", DType.UINT8, List.of(3), "ff007f"))),
                    new Input(0, List.of(tensor("", DType.FLOAT32, List.of(1), "0000003f"))),
                    new Input(5000, List.of(tensor("", DType.INT32, List.of(2), "01000000feffffff")))))),
            Map.entry("predict string", new Predict(8, 1, List.of(new Input(Predict.NO_DEADLINE, List.of(Value.text("", "hé!")))))),
            Map.entry("predict of an app", new Predict(8, 1, List.of(new Input(Predict.NO_DEADLINE, List.of(Value.text("", "hi")))))),
            Map.entry("predict bool tensor", new Predict(9, 2, List.of(new Input(1000000, List.of(
                    tensor("mask", DType.BOOL, List.of(2, 3), "010001000100"),
                    tensor("k", DType.INT64, List.of(), "ffffffffffffffff")))))),
            Map.entry("predict of a newer peer (decode only)",
                    new Predict(1, 1, List.of(new Input(1000, List.of(Value.text("", "x")))))),
            Map.entry("ping", 0x1122334455667788L),
            Map.entry("pong", 0x1122334455667788L),
            Map.entry("bye", "stopped"),
            Map.entry("drain", "8 with 0 bytes"),
            Map.entry("cancel one", "5 with 12 bytes"),
            Map.entry("cancel all", "5 with 12 bytes"),
            Map.entry("feedback", "10 with 94 bytes"),
            Map.entry("optional kind of a newer peer (decode only)", "200 with 2 bytes"));

    /** What is written. */
    private static final Map<String, ByteBuffer> WRITTEN = Map.of(
            "hello", new Hello(0, Hello.GATEWAY, 1, 64 << 20, "gw", "tok", "s/1").encode(),
            "hello without fields", new Hello(0, Hello.CONTAINER, 0, 65536, "", "", "").encode(),
            "announce", Announcement.encode(
                    new Announcement(1, State.READY, InputType.DOUBLES, 13, "wine", "1", ""),
                    new Announcement(2, State.LOADING, InputType.ANY, 0, "a", "2.0", "pre"),
                    new Announcement(3, State.GONE, InputType.ANY, 0, "", "", "")),
            "reply with confidence and qualifiers", qualified(),
            "reply error", failed(),
            "reply end", new Reply(7, Frame.MAX).finish(0),
            "ping", Frame.nonce(Kind.PING, 0x1122334455667788L),
            "pong", Frame.nonce(Kind.PONG, 0x1122334455667788L),
            "drain", Frame.drain(),
            "bye", Frame.bye("stopped"));

    /**
     * What a container neither reads nor writes: it offers no compression, answers once for each input, runs one batch at a time,
     * counts nothing, is no host of other models, and shares no memory.
     */
    private static final List<String> OTHERS = List.of("reply", "reply streamed", "reply with stages", "metrics counter", "metrics gauge",
            "metrics histogram", "predict compressed (decode only)", "announce of a host", "announce of a concurrent container", "load", "load by its address", "unload",
            "memory", "shared", "free");

    @Test
    void everyFrameIsReadAsItIsMeant() throws ProtocolException {
        for (Map.Entry<String, Object> want : READ.entrySet()) {
            Frame frame = Golden.of(want.getKey()).frame();
            Object read = switch (frame.kind()) {
                case Kind.HELLO -> Hello.decode(frame.body());
                case Kind.PREDICT -> Predict.decode(frame.body());
                case Kind.PING, Kind.PONG -> frame.nonce();
                case Kind.BYE -> frame.reason();
                default -> frame.kind() + " with " + frame.body().remaining() + " bytes";
            };
            assertEquals(want.getValue(), read, want.getKey());
        }
    }

    @Test
    void everyFrameIsWrittenAsItStandsThere() {
        for (Map.Entry<String, ByteBuffer> have : WRITTEN.entrySet()) {
            byte[] bytes = new byte[have.getValue().remaining()];
            have.getValue().get(0, bytes);
            assertEquals(hex(Golden.of(have.getKey()).bytes()), hex(bytes), have.getKey());
        }
    }

    @Test
    void noFrameIsForgotten() {
        TreeSet<String> known = new TreeSet<>(READ.keySet());
        known.addAll(WRITTEN.keySet());
        known.addAll(OTHERS);
        assertEquals(Golden.all().stream().map(Golden::name).collect(Collectors.toCollection(TreeSet::new)), known);
    }

    @Test
    void whatWasNotOfferedIsRefused() {
        Golden compressed = Golden.of("predict compressed (decode only)");
        ProtocolException e = assertThrows(ProtocolException.class, compressed::frame);
        assertEquals("frame flags at byte 5: the body is compressed, which was not agreed on", e.getMessage());
    }

    private static ByteBuffer qualified() {
        Reply reply = new Reply(7, Frame.MAX);
        reply.add(0, List.of(Value.json("", "{\"a\":1}")), 0.75,
                List.of(tensor("p", DType.FLOAT32, List.of(2), "0000803e0000403f"), Value.text("n", "x")));
        return reply.finish(0);
    }

    private static ByteBuffer failed() {
        Reply reply = new Reply(7, Frame.MAX);
        reply.fail(0, Status.MODEL_ERROR, "ValueError: no");
        reply.fail(1, Status.EXPIRED, "");
        return reply.finish(0);
    }

    private static Value tensor(String name, DType dtype, List<Integer> shape, String hex) {
        return new Value(name, dtype, shape, ByteBuffer.wrap(HexFormat.of().parseHex(hex)).order(ByteOrder.LITTLE_ENDIAN));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
