package topsail.pmml;

import java.util.List;
import java.util.Map;
import topsail.container.Json;

/** Reads a JSON object whose members are numbers, texts, booleans or null: one record. */
final class JsonRecord {
    private JsonRecord() {}

    /** The members, in their order: a Double, String, Boolean or null for each name. */
    static Map<String, Object> parse(String text) throws BadInput {
        Map<String, Object> members;
        try {
            members = Json.object(text);
        } catch (Json.Invalid e) {
            throw new BadInput("the input is not a JSON object with the model's fields: " + e.getMessage());
        }
        for (Map.Entry<String, Object> member : members.entrySet()) {
            if (member.getValue() instanceof Map || member.getValue() instanceof List) {
                throw new BadInput("the field " + Json.quoted(member.getKey())
                        + " is an object or array: it has to be a number, a text, true, false or null");
            }
        }
        return members;
    }
}
