// Package require ends a test where what it builds on has failed. What a test is about it compares itself, and says what it got.
package require

// T is a test: of package testing, or one case of a property.
type T interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test at an error. Without one it costs a benchmark nothing.
func NoError(t T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
