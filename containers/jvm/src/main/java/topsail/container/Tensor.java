package topsail.container;

import java.util.List;
import topsail.rpc.DType;
import topsail.rpc.Payload;
import topsail.rpc.Value;

/**
 * One input or output of a signature.
 *
 * @param shape the dimensions of one query, without the batch; -1 is any length; empty is a scalar
 */
public record Tensor(String name, DType type, List<Integer> shape) {
    /** Why a value is not of this tensor, or null. Names are not compared. */
    String problem(Value value) {
        if (value.dtype() != type || !fits(value.shape())) {
            return quoted() + " must be " + Value.described(type, shape) + ", and is " + value.described();
        }
        String problem = Payload.problem(value);
        return problem == null ? null : quoted() + ": " + problem;
    }

    private boolean fits(List<Integer> given) {
        boolean fits = given.size() == shape.size();
        for (int i = 0; fits && i < given.size(); i++) {
            fits = shape.get(i) < 0 || shape.get(i).equals(given.get(i));
        }
        return fits;
    }

    String quoted() {
        return Json.quoted(name);
    }
}
