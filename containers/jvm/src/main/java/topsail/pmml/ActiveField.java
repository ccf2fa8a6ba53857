package topsail.pmml;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.pmml4s.common.BooleanType$;
import org.pmml4s.common.IntegerType$;
import org.pmml4s.data.DataVal;
import org.pmml4s.metadata.Field;
import org.pmml4s.metadata.InvalidValueTreatment;
import org.pmml4s.metadata.MiningField;
import org.pmml4s.metadata.MissingValueTreatment;
import topsail.container.Json;

/**
 * A field that the model takes. It makes the evaluator's values of ours, and refuses by a sentence what the evaluator would
 * answer with nothing, or would take for something else.
 */
final class ActiveField {
    private static final int SHOWN = 10; // values in a message
    private static final double EXACT = 1L << 53; // the largest whole number of a double without gaps before it

    private final Field field;
    private final boolean refusesInvalid;
    private final boolean refusesMissing;

    ActiveField(Field field, MiningField mining) {
        this.field = field;
        this.refusesInvalid = mining.invalidValueTreatment() == InvalidValueTreatment.returnInvalid();
        this.refusesMissing = mining.missingValueTreatment().contains(MissingValueTreatment.returnInvalid());
    }

    String name() {
        return field.name();
    }

    /** Where the evaluator wants the value. */
    int index() {
        return field.index();
    }

    boolean isMissing(DataVal value) {
        return field.isMissingValue(value);
    }

    /** The value for a number, a text, a boolean, or null for a missing one; NaN is missing too. */
    DataVal value(Object given) throws BadInput {
        DataVal value = convert(given);
        if (field.isMissingValue(value)) {
            if (refusesMissing) {
                throw bad("is missing, and the model does not do without");
            }
        } else if (refusesInvalid && field.isInvalidValue(value)) {
            throw bad("is " + shown(given) + ", and the model takes " + valid());
        }
        return value;
    }

    /** Some value that is valid, or a missing one. */
    DataVal sample() {
        DataVal[] valid = field.validValues();
        if (valid.length > 0) {
            return valid[0];
        }
        try {
            return value(field.isNumeric() ? 0.0 : null);
        } catch (BadInput e) {
            return DataVal.NULL();
        }
    }

    private DataVal convert(Object given) throws BadInput {
        if (given == null || given instanceof Double number && number.isNaN()) {
            return DataVal.NULL();
        }
        if (field.dataType() == BooleanType$.MODULE$) {
            return DataVal.from(bool(given));
        }
        if (field.dataType() == IntegerType$.MODULE$) {
            return DataVal.from(whole(given));
        }
        if (field.isNumeric()) {
            return DataVal.from(number(given, "a number"));
        }
        return text(text(given));
    }

    private boolean bool(Object given) throws BadInput {
        if (given instanceof Boolean b) {
            return b;
        }
        double number = number(given, "true or false");
        if (number != 0 && number != 1) {
            throw bad("is " + shown(given) + ", and the model takes true or false, or 1 or 0");
        }
        return number == 1;
    }

    private long whole(Object given) throws BadInput {
        if (given instanceof Long integer) {
            return integer;
        }
        double number = number(given, "a whole number");
        if (number != Math.rint(number) || Math.abs(number) > EXACT) {
            throw bad("is " + shown(given) + ", and the model takes a whole number");
        }
        return (long) number;
    }

    private double number(Object given, String wanted) throws BadInput {
        if (given instanceof Number number) {
            return number.doubleValue();
        }
        throw bad("is " + shown(given) + ", and the model takes " + wanted);
    }

    /** Of a vector even a category is a number: 4 is the category "4". */
    private static String text(Object given) {
        return Outputs.text(given);
    }

    private DataVal text(String text) throws BadInput {
        if (field.isString()) {
            return DataVal.from(text);
        }
        try {
            return field.toVal(text); // a time or date
        } catch (RuntimeException e) {
            throw bad("is " + shown(text) + ", and the model takes a " + field.dataType());
        }
    }

    private String valid() {
        DataVal[] values = field.validValues();
        if (values.length == 0) {
            return Arrays.stream(field.intervals()).map(Object::toString).collect(Collectors.joining(" or "));
        }
        String list = Arrays.stream(values).limit(SHOWN).map(v -> Outputs.text(v.toVal())).collect(Collectors.joining(", "));
        return values.length > SHOWN ? list + " and " + (values.length - SHOWN) + " more" : list;
    }

    private BadInput bad(String why) {
        return new BadInput("the field " + Json.quoted(name()) + " " + why);
    }

    private static String shown(Object given) {
        return given instanceof String text ? Json.quoted(text) : text(given);
    }
}
