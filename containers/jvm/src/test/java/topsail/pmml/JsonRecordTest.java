package topsail.pmml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class JsonRecordTest {
    @Test
    void recordsAreRead() throws BadInput {
        assertEquals(Map.of(), JsonRecord.parse(" { } "));
        Map<String, Object> want = new LinkedHashMap<>();
        want.put("a", -1.5e3);
        want.put("b", "x\n\"\\/üé😀\u0001");
        want.put("c", true);
        want.put("d", false);
        want.put("", null);
        want.put("e", 0.0);
        assertEquals(want, JsonRecord.parse("""
            {"a": -1.5e3, "b":"x\\n\\"\\\\\\/\\u00fcé\\ud83d\\ude00\\u0001",
            "c" :true,"d":false ,"":null,"e":0}"""));
        assertEquals(Map.of("a", Double.POSITIVE_INFINITY), JsonRecord.parse("{\"a\":1e999}"));
    }

    @Test
    void whatIsNoRecordIsNamed() {
        refused("at character 0 there is no {", "");
        refused("at character 0 there is no {", "[1, 2]");
        refused("at character 1 there is no \"", "{a: 1}");
        refused("at character 8 there is no }", "{\"a\": 1 \"b\": 2}");
        refused("at character 7 more follows the object", "{\"a\":1}{");
        refused("at character 12 'a' is there twice", "{\"a\":1,\"a\":2}");
        refused("the field 'a' is an object or array", "{\"a\":{\"b\":1}}");
        refused("the field 'a' is an object or array", "{\"a\":[]}");
        refused("at character 5 there is no value", "{\"a\":NaN}");
        refused("there is no }", "{\"a\":01}");
        refused("there is no }", "{\"a\":1.}");
        refused("a text has no end", "{\"a\":\"x");
        refused("a text has no end", "{\"a\":\"x\ny\"}");
        refused("a backslash is followed by what JSON does not know", "{\"a\":\"\\x\"}");
        refused("\\u is not followed by four digits", "{\"a\":\"\\u12");
        refused("'" + "n".repeat(40) + "…'", "{\"" + "n".repeat(50) + "\":[]}");
    }

    private static void refused(String why, String text) {
        BadInput e = assertThrows(BadInput.class, () -> JsonRecord.parse(text), text);
        assertTrue(e.getMessage().contains(why), e.getMessage());
    }

    @Test
    void anyTextIsReadOrRefused() {
        Random random = new Random(1);
        String characters = "{}[]\":,\\u0123456789eE+-.truefalsn \n\u00fc\ud83d";
        for (int i = 0; i < 50_000; i++) {
            StringBuilder text = new StringBuilder("{\"a\":");
            for (int n = random.nextInt(20); n > 0; n--) {
                text.append(characters.charAt(random.nextInt(characters.length())));
            }
            try {
                JsonRecord.parse(text.substring(random.nextInt(3)));
            } catch (BadInput e) {
                assertTrue(e.getMessage().startsWith("the "), e.getMessage());
            }
        }
    }
}
