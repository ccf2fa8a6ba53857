package topsail.container;

import java.util.List;
import topsail.rpc.Status;
import topsail.rpc.Value;

/** What became of one input. */
public sealed interface Outcome {
    /**
     * An output.
     *
     * @param values one; or, for a signature with outputs, one for each of them, under their names and in any order
     * @param confidence from 0 to 1, or null
     * @param qualifiers more about the output, by the names of the values
     */
    record Output(List<Value> values, Double confidence, List<Value> qualifiers) implements Outcome {
        /** An output of one value. */
        public Output(Value value, Double confidence, List<Value> qualifiers) {
            this(List.of(value), confidence, qualifiers);
        }
    }

    /** Why there is none, as a sentence for people: of a model error, "Type: text". */
    record Failure(Status status, String message) implements Outcome {}

    static Outcome badInput(String message) {
        return new Failure(Status.BAD_INPUT, message);
    }

    static Outcome modelError(Throwable e) {
        String name = e.getClass().getSimpleName();
        return new Failure(Status.MODEL_ERROR, e.getMessage() == null ? name : name + ": " + e.getMessage());
    }
}
