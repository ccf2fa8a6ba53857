// Package mapping reads records of topics that know nothing of Topsail, and writes results for
// their readers. A value is decoded into a tree: of JSON, of a protobuf message by its descriptor,
// of an Avro datum by its schema, or the bytes or the text that it is. Paths take from it what a
// query is made of.
package mapping
