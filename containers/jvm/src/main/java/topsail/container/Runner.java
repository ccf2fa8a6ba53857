package topsail.container;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import topsail.rpc.InputType;
import topsail.rpc.Predict;
import topsail.rpc.Reply;
import topsail.rpc.Status;
import topsail.rpc.Value;

/** One batch, from decoded frame to encoded reply. Each input gets exactly one answer, whatever the model does. */
final class Runner {
    private final Model model;
    private final InputType inputType;
    private final int inputLength;
    private final Signature signature;

    /** It throws PermanentFailure for a model that cannot take the inputs. */
    Runner(Model model, Settings settings) throws PermanentFailure {
        this.model = model;
        this.inputType = settings.inputType();
        this.inputLength = settings.inputLength();
        this.signature = settings.signature();
        if (signature.inputs().size() > 1 && !(model instanceof TensorModel)) {
            throw new PermanentFailure("the signature has the inputs " + Signature.names(signature.inputs())
                    + ", and the model takes one value: make it a TensorModel");
        }
    }

    /** Answers a batch that came at {@code received} (System.nanoTime) with the frames of its reply. */
    ByteBuffer run(Predict batch, long received, int maxFrame) {
        long started = System.nanoTime();
        Reply reply = new Reply(batch.batch(), maxFrame);
        List<List<Value>> inputs = new ArrayList<>(batch.inputs().size());
        List<Integer> places = new ArrayList<>(batch.inputs().size()); // where each of the inputs stands in the batch
        for (int place = 0; place < batch.inputs().size(); place++) {
            Predict.Input input = batch.inputs().get(place);
            String problem;
            if (expired(input, started - received)) {
                reply.fail(place, Status.EXPIRED, "the time was up before the model could run");
            } else if ((problem = problem(input.values())) != null) {
                reply.fail(place, Status.BAD_INPUT, problem);
            } else {
                inputs.add(input.values());
                places.add(place);
            }
        }
        if (inputs.isEmpty()) {
            return reply.finish(0);
        }
        List<Outcome> outcomes = predict(inputs);
        for (int i = 0; i < places.size(); i++) {
            add(reply, places.get(i), outcomes.get(i));
        }
        long micros = TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - started);
        return reply.finish(Math.max(micros, 1)); // 0 would mean that it is not known
    }

    private static boolean expired(Predict.Input input, long waited) {
        return input.left() != Predict.NO_DEADLINE && TimeUnit.MICROSECONDS.toNanos(input.left()) <= waited;
    }

    /** What is wrong with an input, or null. */
    private String problem(List<Value> values) {
        if (!signature.inputs().isEmpty()) {
            return signature.inputProblem(values);
        }
        if (values.size() != 1) {
            return "this container takes one value per input, and got " + values.size();
        }
        Value value = values.get(0);
        if (inputType.dtype != null && value.dtype() != inputType.dtype) {
            return "the model takes " + inputType + ", and got a value of type " + value.dtype();
        }
        if (inputLength > 0 && value.size() != inputLength) {
            return "the model takes inputs of length " + inputLength + ", and got one of length " + value.size();
        }
        return null;
    }

    private List<Outcome> predict(List<List<Value>> inputs) {
        try {
            List<Outcome> outcomes = call(inputs);
            if (outcomes.size() == inputs.size()) {
                return outcomes;
            }
            throw new IllegalStateException("predict returned " + outcomes.size() + " outcomes for " + inputs.size() + " inputs");
        } catch (Exception | StackOverflowError e) { // of a model's own making; other errors end the process
            return Collections.nCopies(inputs.size(), Outcome.modelError(e));
        }
    }

    private List<Outcome> call(List<List<Value>> inputs) throws Exception {
        if (model instanceof TensorModel tensors && !signature.inputs().isEmpty()) {
            return tensors.predictTensors(inputs.stream().map(Signature::byName).toList());
        }
        return model.predict(inputs.stream().map(values -> values.get(0)).toList());
    }

    private void add(Reply reply, int place, Outcome outcome) {
        if (outcome instanceof Outcome.Output output) {
            try {
                reply.add(place, signature.outputs(output.values()), output.confidence(), output.qualifiers());
            } catch (IllegalArgumentException e) {
                add(reply, place, Outcome.modelError(e));
            }
        } else if (outcome instanceof Outcome.Failure failure) {
            reply.fail(place, failure.status(), failure.message());
        } else {
            reply.fail(place, Status.MODEL_ERROR, "IllegalStateException: the model gave no outcome");
        }
    }
}
