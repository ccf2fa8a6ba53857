// Package schema reads JSON and TOML into structs whose tags say everything about their fields:
//
//	json      the name
//	toml      the name in files, where it differs; "-": it is not in files
//	help      one line for people
//	required  "yes": it must be in a JSON object
//	default   the value of what is not given, as text
//	min       the least integer
//	enum      the words that are allowed, separated by spaces
//	accept    TOML types that are taken by their text
//
// It is strict: unknown and repeated names, nulls and values of other types are errors that
// name where they are.
package schema
