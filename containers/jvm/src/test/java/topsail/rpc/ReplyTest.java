package topsail.rpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReplyTest {
    @Test
    void aReplyThatIsTooLargeGoesInSeveralFrames() throws IOException {
        Reply reply = new Reply(5, Frame.MIN_MAX);
        for (int i = 0; i < 7; i++) {
            reply.add(i, List.of(Value.text("", "x".repeat(20_000))), null, List.of());
        }
        List<Frame> frames = frames(reply);
        assertEquals(3, frames.size());
        List<Replied> answers = new ArrayList<>();
        for (Frame frame : frames) {
            assertTrue(frame.body().remaining() <= Frame.MIN_MAX);
            assertEquals(frame == frames.get(2), (frame.flags() & Frame.END) != 0, "END is on the last frame alone");
            answers.addAll(Replied.decode(frame));
        }
        for (int i = 0; i < 7; i++) {
            assertEquals(i, answers.get(i).index());
            assertEquals("x".repeat(20_000), answers.get(i).values().get(0).text());
        }
    }

    @Test
    void anOutputThatFitsInNoFrameIsAnErrorOfItsInput() throws IOException {
        Reply reply = new Reply(5, Frame.MIN_MAX);
        reply.add(0, List.of(Value.text("", "x".repeat(Frame.MIN_MAX))), null, List.of());
        reply.add(1, List.of(Value.number("", 1.5)), null, List.of());
        List<Replied> answers = Replied.decode(frames(reply).get(0));
        assertEquals(Status.MODEL_ERROR.code, answers.get(0).status());
        assertEquals("OverflowError: an output of 65554 bytes cannot be sent", answers.get(0).message());
        assertEquals(1.5, answers.get(1).values().get(0).number(0));
    }

    @Test
    void longMessagesAndNamesAreCutBetweenCharacters() throws IOException {
        Reply reply = new Reply(5, Frame.MAX);
        reply.fail(0, Status.BAD_INPUT, "x" + "é".repeat(5000));
        reply.add(1, List.of(Value.number("", 0)), null, List.of(Value.number("ü".repeat(200), 1)));
        List<Replied> answers = Replied.decode(frames(reply).get(0));
        assertEquals("x" + "é".repeat(2047), answers.get(0).message());
        assertEquals("ü".repeat(127), answers.get(1).qualifiers().get(0).name());
    }

    private static List<Frame> frames(Reply reply) throws ProtocolException {
        Assembler assembler = new Assembler();
        List<Frame> frames = new ArrayList<>();
        java.nio.ByteBuffer bytes = reply.finish(1);
        while (bytes.hasRemaining()) {
            assembler.room().put(bytes.get());
            Frame frame = assembler.next();
            if (frame != null) {
                frames.add(frame);
            }
        }
        assertNull(assembler.next());
        return frames;
    }
}
