package topsail.container;

/** There was no connection to the sidecar for too long. */
final class SidecarGone extends Exception {
    private static final long serialVersionUID = 1;

    SidecarGone(String message) {
        super(message);
    }
}
