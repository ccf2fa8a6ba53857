package topsail.container;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.Test;
import topsail.rpc.DType;
import topsail.rpc.Value;

class SignatureTest {
    private static final Signature SIGNATURE = Signature.parse("""
        {"inputs": [{"name": "image", "type": "uint8", "shape": [-1, 2]}, {"name": "text", "type": "string"}],
         "outputs": [{"name": "score", "type": "float32"}, {"name": "words", "type": "string", "shape": [-1]}]}""");
    private static final Value IMAGE = Value.integers("image", DType.UINT8, List.of(1, 2), 3, 4);
    private static final Value SCORE = Value.numbers("score", DType.FLOAT32, List.of(), 0.5);
    private static final Value WORDS = Value.texts("words", List.of(2), List.of("a", "b"));

    @Test
    void theJsonOfTopsailIsRead() {
        assertEquals(List.of(new Tensor("image", DType.UINT8, List.of(-1, 2)), new Tensor("text", DType.STRING, List.of())), SIGNATURE.inputs());
        assertEquals(Signature.NONE, Signature.parse("{}"));
        for (DType type : DType.values()) {
            if (type != DType.OPAQUE) {
                assertEquals(type, Signature.parse("{\"inputs\": [{\"name\": \"x\", \"type\": \"" + type + "\"}]}").inputs().get(0).type());
            }
        }
    }

    @Test
    void whatIsNoSignatureIsNamed() {
        unread("at character 0 there is no {", "[]");
        unread("1.0 is not a list", "{\"inputs\": 1}");
        unread("an input or output has no name", "{\"inputs\": [{\"type\": \"bool\"}]}");
        unread("'x' has the element type complex64, which is unknown: it needs a newer container",
                "{\"outputs\": [{\"name\": \"x\", \"type\": \"complex64\"}]}");
        unread("-2.0 is not a dimension", "{\"inputs\": [{\"name\": \"x\", \"type\": \"bool\", \"shape\": [-2]}]}");
        unread("1.0E10 is not a dimension", "{\"inputs\": [{\"name\": \"x\", \"type\": \"bool\", \"shape\": [1e10]}]}");
        PermanentFailure e = assertThrows(PermanentFailure.class, () -> SettingsTest.with("SIGNATURE", "[]"));
        assertEquals("TOPSAIL_SIGNATURE cannot be read: at character 0 there is no {", e.getMessage());
    }

    private static void unread(String why, String json) {
        assertEquals(why, assertThrows(IllegalArgumentException.class, () -> Signature.parse(json)).getMessage());
    }

    @Test
    void aQueryThatDoesNotFitIsNamed() {
        Value text = Value.text("text", "hé");
        assertNull(SIGNATURE.inputProblem(List.of(text, IMAGE)), "in the order of the app");
        assertEquals("this model takes 'image', 'text', and got 'text'", SIGNATURE.inputProblem(List.of(text)));
        assertEquals("this model takes 'image', 'text', and got 'text'", SIGNATURE.inputProblem(List.of(text, text)));
        assertEquals("this model takes 'image', 'text', and got nothing", SIGNATURE.inputProblem(List.of()));
        assertEquals("'image' must be uint8[-1,2], and is uint8[2]",
                SIGNATURE.inputProblem(List.of(Value.integers("image", DType.UINT8, List.of(2), 3, 4), text)));
        assertEquals("'text' must be string, and is bytes",
                SIGNATURE.inputProblem(List.of(IMAGE, Value.blobs("text", DType.BYTES, List.of(), List.of(new byte[1])))));
    }

    @Test
    void outputsComeInTheOrderOfTheSignature() {
        assertEquals(List.of(SCORE, WORDS), SIGNATURE.outputs(List.of(WORDS, SCORE)));
        assertEquals(List.of(IMAGE), Signature.NONE.outputs(List.of(IMAGE)), "which says nothing of outputs");
        Signature one = new Signature(List.of(), SIGNATURE.outputs().subList(0, 1));
        assertEquals(List.of(SCORE), one.outputs(List.of(SCORE.named(""))), "one output needs no name");
    }

    @Test
    void outputsThatDoNotFitAreNamed() {
        failed("the outputs must be 'score', 'words', and are 'score'", SCORE);
        failed("the outputs must be 'score', 'words', and are 'score', 'image'", SCORE, IMAGE);
        failed("output 'score' must be float32, and is float64", Value.number("score", 1), WORDS);
        failed("output 'score': the shape needs 4 bytes, and there are 3", new Value("score", DType.FLOAT32, List.of(), ByteBuffer.allocate(3)), WORDS);
        failed("output 'words': the data end before the last element", SCORE,
                new Value("words", DType.STRING, List.of(1), ByteBuffer.wrap(new byte[] {1, 0, 0, 0})));
    }

    private static void failed(String why, Value... outputs) {
        assertEquals(why, assertThrows(IllegalArgumentException.class, () -> SIGNATURE.outputs(List.of(outputs))).getMessage());
    }
}
