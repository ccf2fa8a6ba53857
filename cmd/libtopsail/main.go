// Command libtopsail is Topsail as a library for C and all that can call it: local mode inside the program that loads it.
// topsail.h is what the program sees, and says who owns what. It is built as a c-shared library: `make lib`.
package main

// main is never called in a c-shared library.
func main() {}
