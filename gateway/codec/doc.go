// Package codec reads the bodies of Clipper's predict and update requests and writes
// their answers. It works on bytes, without reflection, because this is most of what
// a query costs that the cache can answer.
//
// The decoder is a strict JSON reader with one pass over the usual body. What it
// returns owns its memory: nothing points into the body, which belongs to the
// HTTP server and is overwritten by the next request.
//
// It differs from Clipper, on purpose, in these:
//   - whole numbers are accepted where doubles or floats are expected;
//   - base64 is validated, and padding is optional;
//   - an empty list of numbers and empty bytes are errors, an empty text is not;
//   - text that is not UTF-8 is an error; a lone surrogate becomes U+FFFD;
//   - nesting, the number of inputs and the length of names are bounded;
//   - uid, context, slo_micros, salt, no_cache and explain mean something and are
//     checked;
//   - feedback comes in batches too, names its query by its input or its id, and judges
//     it by a reward or by a label of any type.
package codec
