package topsail.container;

import topsail.rpc.Predict;

/**
 * A batch. It remembers its connection: if that is lost meanwhile, the reply is dropped.
 *
 * @param received by System.nanoTime
 */
record Job(Predict batch, long received, Connection connection) {}
