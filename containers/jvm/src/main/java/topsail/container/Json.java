package topsail.container;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads JSON: a Map, List, String, Double, Boolean or null for each value. */
public final class Json {
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");
    private static final int MOST_NESTED = 64;
    private static final int SHOWN = 40; // characters of a name

    private final String text;
    private final Matcher number;
    private int at;
    private int nested;

    private Json(String text) {
        this.text = text;
        this.number = NUMBER.matcher(text);
    }

    /** What keeps a text from being a JSON object, as a sentence for people. */
    public static final class Invalid extends IllegalArgumentException {
        private static final long serialVersionUID = 1;

        private Invalid(String message) {
            super(message);
        }

        /** One for each bad input, so without a trace. */
        @Override
        public synchronized Throwable fillInStackTrace() {
            return this;
        }
    }

    /** The members of an object, in their order. It throws Invalid. */
    public static Map<String, Object> object(String text) {
        Json json = new Json(text);
        Map<String, Object> members = json.object();
        if (json.next() >= 0) {
            throw json.fail("more follows the object");
        }
        return members;
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        if (!found('}')) {
            do {
                String name = string();
                expect(':');
                Object value = value();
                if (members.containsKey(name)) {
                    throw fail(quoted(name) + " is there twice");
                }
                members.put(name, value);
            } while (found(','));
            expect('}');
        }
        return members;
    }

    private List<Object> array() {
        List<Object> elements = new ArrayList<>();
        expect('[');
        if (!found(']')) {
            do {
                elements.add(value());
            } while (found(','));
            expect(']');
        }
        return elements;
    }

    private Object value() {
        int first = next();
        if (first == '"') {
            return string();
        }
        if (first == '{' || first == '[') {
            if (++nested >= MOST_NESTED) {
                throw fail("values are nested more than " + MOST_NESTED + " deep");
            }
            Object value = first == '{' ? object() : array();
            nested--;
            return value;
        }
        if (foundWord("null")) {
            return null;
        }
        if (foundWord("true")) {
            return true;
        }
        if (foundWord("false")) {
            return false;
        }
        if (number.region(at, text.length()).lookingAt()) {
            at = number.end();
            return Double.valueOf(number.group());
        }
        throw fail("there is no value");
    }

    private boolean foundWord(String word) {
        if (!text.startsWith(word, at)) {
            return false;
        }
        at += word.length();
        return true;
    }

    private String string() {
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

    private char escaped() {
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

    private char unicode() {
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

    private void expect(char c) {
        if (!found(c)) {
            throw fail("there is no " + c);
        }
    }

    private Invalid fail(String why) {
        return new Invalid("at character " + at + " " + why);
    }

    /** A name as messages have it. */
    public static String quoted(String name) {
        return "'" + (name.length() > SHOWN ? name.substring(0, SHOWN) + "…" : name) + "'";
    }
}
