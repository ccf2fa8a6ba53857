package topsail.container;

import topsail.rpc.Predict;

/**
 * A batch. It remembers its connection: if that is lost meanwhile, the reply is dropped.
 *
 * @param received by System.nanoTime
 */
record Batch(Predict predict, long received, Connection connection) {}
