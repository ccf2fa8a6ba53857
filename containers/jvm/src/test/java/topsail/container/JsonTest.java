package topsail.container;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Objects and arrays in others; JsonRecordTest has what a flat object is made of. */
class JsonTest {
    @Test
    void valuesInsideOfOthersAreRead() {
        assertEquals(Map.of("a", List.of(List.of(), 1.0, Map.of("b", Arrays.asList(true, null))), "c", Map.of()),
                Json.object("{\"a\": [[], 1, {\"b\": [true, null]} ], \"c\":{ }}"));
    }

    @Test
    void whatIsBrokenIsNamed() {
        assertEquals("at character 8 there is no ]", refused("{\"a\":[1 2]}"));
        assertEquals("at character 8 there is no value", refused("{\"a\":[1,]}"));
        assertEquals("at character 68 values are nested more than 64 deep", refused("{\"a\":" + "[".repeat(1_000_000)));
    }

    private static String refused(String text) {
        return assertThrows(Json.Invalid.class, () -> Json.object(text)).getMessage();
    }
}
