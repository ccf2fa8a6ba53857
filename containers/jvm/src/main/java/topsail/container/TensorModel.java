package topsail.container;

import java.util.List;
import java.util.Map;
import topsail.rpc.Value;

/** A model of a version whose signature has inputs: it gets each query as values by their names. */
public interface TensorModel extends Model {
    /**
     * Answers a batch: one outcome for each query, in order. Each query has all inputs of the signature, of their types and shapes.
     * The rest is as in {@link Model#predict}.
     */
    List<Outcome> predictTensors(List<Map<String, Value>> queries) throws Exception;

    /** Called for a version without named inputs. */
    @Override
    default List<Outcome> predict(List<Value> inputs) throws Exception {
        throw new IllegalStateException("this model takes named inputs: give its version a signature with inputs");
    }
}
