/**
 * Version 2 of Topsail's protocol, as far as a model container speaks it: see docs/protocol.md.
 *
 * <p>Nothing here knows sockets. Bytes go into an {@link topsail.rpc.Assembler}, which gives frames; the bodies of frames
 * are read with a {@link topsail.rpc.Cursor} and written with an {@link topsail.rpc.Encoder}. Whatever the other side
 * sends ends in a value or in a {@link topsail.rpc.ProtocolException}, and no memory is taken for what was only promised.
 */
package topsail.rpc;
