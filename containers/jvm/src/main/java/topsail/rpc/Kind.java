package topsail.rpc;

/** Kinds of frames. Those from {@link #OPTIONAL} on are skipped by who does not know them. */
public final class Kind {
    public static final int HELLO = 1;
    public static final int ANNOUNCE = 2;
    public static final int PREDICT = 3;
    public static final int REPLY = 4;
    public static final int CANCEL = 5;
    public static final int PING = 6;
    public static final int PONG = 7;
    public static final int DRAIN = 8;
    public static final int BYE = 9;
    public static final int FEEDBACK = 10;
    public static final int OPTIONAL = 128;

    private Kind() {}
}
