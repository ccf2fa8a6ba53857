package topsail.rpc;

/** What became of an input, as far as a container says it. */
public enum Status {
    OK(0),
    MODEL_ERROR(1),
    BAD_INPUT(2),
    EXPIRED(5),
    DRAINING(6),
    UNKNOWN_MODEL(7);

    final int code;

    Status(int code) {
        this.code = code;
    }
}
