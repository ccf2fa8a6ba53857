package topsail.pmml;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads a JSON object whose members are numbers, texts, booleans or null: one record. */
final class JsonRecord {
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");
    private static final int SHOWN = 40; // characters of a name

    private final String text;
    private final Matcher number;
    private int at;

    private JsonRecord(String text) {
        this.text = text;
        this.number = NUMBER.matcher(text);
    }

    /** The members, in their order: a Double, String, Boolean or null for each name. */
    static Map<String, Object> parse(String text) throws BadInput {
        return new JsonRecord(text).object();
    }

    private Map<String, Object> object() throws BadInput {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        if (!found('}')) {
            do {
                String name = string();
                expect(':');
                Object value = value(name);
                if (members.containsKey(name)) {
                    throw new BadInput("the field " + quoted(name) + " is there twice");
                }
                members.put(name, value);
            } while (found(','));
            expect('}');
        }
        if (next() >= 0) {
            throw fail("more follows the object");
        }
        return members;
    }

    private Object value(String name) throws BadInput {
        switch (next()) {
            case '"':
                return string();
            case '{', '[':
                throw new BadInput("the field " + quoted(name) + " is an object or array: it has to be a number, a text, true, false or null");
            default:
        }
        for (Map.Entry<String, Object> word : WORDS) {
            if (text.startsWith(word.getKey(), at)) {
                at += word.getKey().length();
                return word.getValue();
            }
        }
        if (number.region(at, text.length()).lookingAt()) {
            at = number.end();
            return Double.valueOf(number.group());
        }
        throw fail("the field " + quoted(name) + " has no value that JSON has");
    }

    private static final Iterable<Map.Entry<String, Object>> WORDS = words();

    private static Iterable<Map.Entry<String, Object>> words() {
        Map<String, Object> words = new LinkedHashMap<>();
        words.put("true", true);
        words.put("false", false);
        words.put("null", null);
        return words.entrySet();
    }

    private String string() throws BadInput {
        expect('"');
        StringBuilder read = new StringBuilder();
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return read.toString();
            }
            if (c < ' ') {
                break;
            }
            read.append(c == '\\' ? escaped() : c);
        }
        throw fail("a text has no end");
    }

    private char escaped() throws BadInput {
        int c = at < text.length() ? text.charAt(at++) : -1;
        return switch (c) {
            case '"', '\\', '/' -> (char) c;
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> unicode();
            default -> throw fail("a backslash is followed by what JSON does not know");
        };
    }

    private char unicode() throws BadInput {
        String digits = text.substring(at, Math.min(at + 4, text.length()));
        if (!digits.matches("[0-9A-Fa-f]{4}")) {
            throw fail("\\u is not followed by four digits");
        }
        at += 4;
        return (char) Integer.parseInt(digits, 16);
    }

    /** The next character that is no space, which is not read yet, or -1. */
    private int next() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : -1;
    }

    private boolean found(char c) {
        if (next() != c) {
            return false;
        }
        at++;
        return true;
    }

    private void expect(char c) throws BadInput {
        if (!found(c)) {
            throw fail("there is no " + c);
        }
    }

    private BadInput fail(String why) {
        return new BadInput("the input is not a JSON object with the model's fields: at character " + at + " " + why);
    }

    /** A name as messages have it. */
    static String quoted(String name) {
        return "'" + (name.length() > SHOWN ? name.substring(0, SHOWN) + "…" : name) + "'";
    }
}
