package topsail.rpc;

import java.io.IOException;

/** The other side broke the protocol: in which field, at which byte of the frame's body, and how. */
public final class ProtocolException extends IOException {
    private static final long serialVersionUID = 1;

    public ProtocolException(String field, int offset, String problem) {
        super(field + " at byte " + offset + ": " + problem);
    }
}
