/**
 * A model container: loads a {@link topsail.container.Model}, serves it to a sidecar, and stops in order.
 *
 * <pre>
 * main thread                    link thread
 * load, announce                 dial, HELLO, ANNOUNCE; again after a loss
 * inbox.take, run, send     &lt;-   PREDICT: inbox.put
 *                                PING: PONG
 * drain, close                   ends
 * </pre>
 *
 * <p>A program calls {@link topsail.container.Serve#serve} with what loads its model.
 */
package topsail.container;
