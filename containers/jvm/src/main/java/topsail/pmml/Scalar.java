package topsail.pmml;

import java.math.BigDecimal;
import java.nio.charset.CharacterCodingException;
import java.util.List;
import topsail.container.Json;
import topsail.container.PermanentFailure;
import topsail.container.Tensor;
import topsail.rpc.DType;
import topsail.rpc.Value;

/** Scalars of a signature, to and from what PMML has: numbers, texts and booleans. */
final class Scalar {
    private Scalar() {}

    /** Refuses a tensor that is something else. */
    static void check(Tensor tensor) throws PermanentFailure {
        if (!tensor.shape().isEmpty() || tensor.type() == DType.BYTES || tensor.type() == DType.JSON) {
            throw new PermanentFailure("a PMML model has numbers, bools and strings without a shape, and the signature has %s as %s"
                    .formatted(Json.quoted(tensor.name()), Value.described(tensor.type(), tensor.shape())));
        }
    }

    /** A Long, Double, String or Boolean. */
    static Object read(Value value) throws BadInput {
        return switch (value.dtype()) {
            case STRING -> text(value);
            case BOOL -> value.integer(0) != 0;
            case FLOAT16, BFLOAT16, FLOAT32, FLOAT64, UINT64 -> value.number(0);
            default -> value.integer(0);
        };
    }

    private static String text(Value value) throws BadInput {
        try {
            return value.text();
        } catch (CharacterCodingException e) {
            throw new BadInput("the field " + Json.quoted(value.name()) + " is not UTF-8");
        }
    }

    /** An output that the evaluator has given; null for a missing one, which is NaN. It throws IllegalArgumentException. */
    static Value write(Tensor tensor, Object given) {
        if (given == null) {
            return missing(tensor);
        }
        String text = Outputs.text(given);
        try {
            return switch (tensor.type()) {
                case STRING -> Value.text(tensor.name(), text);
                case FLOAT16, BFLOAT16, FLOAT32, FLOAT64 -> Value.numbers(tensor.name(), tensor.type(), List.of(), Double.parseDouble(text));
                default -> Value.integers(tensor.name(), tensor.type(), List.of(), whole(text));
            };
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new IllegalArgumentException("output %s is %s, and the signature has %s".formatted(Json.quoted(tensor.name()), text, tensor.type()));
        }
    }

    private static Value missing(Tensor tensor) {
        return switch (tensor.type()) {
            case FLOAT16, BFLOAT16, FLOAT32, FLOAT64 -> Value.numbers(tensor.name(), tensor.type(), List.of(), Double.NaN);
            default -> throw new IllegalArgumentException("the model says nothing of the output " + Json.quoted(tensor.name()));
        };
    }

    private static long whole(String text) {
        return switch (text) {
            case "true" -> 1;
            case "false" -> 0;
            default -> new BigDecimal(text).longValueExact();
        };
    }
}
