package topsail.container;

import java.util.List;
import topsail.rpc.Value;

/** A named function from inputs to outputs. It is called by one thread, the one that has loaded it. */
public interface Model {
    /**
     * Answers a batch: one outcome for each input, in order. An input is one value, also of a version whose signature has one input;
     * for more there is {@link TensorModel}. The data of inputs are valid until it returns. What it throws
     * fails all inputs of the batch.
     */
    List<Outcome> predict(List<Value> inputs) throws Exception;

    /** Runs before the model is announced as ready, so that no query pays for what only the first one costs. */
    default void warmUp() throws Exception {}
}
