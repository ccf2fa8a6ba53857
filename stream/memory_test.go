package stream

import "testing"

// TestMemory keeps as many ids as it has room for, the last ones, and each as it came first.
func TestMemory(t *testing.T) {
	m := newMemory(2)
	expect := func(id string, want string) {
		t.Helper()
		if got, known := m.of(id); got.position != want || known != (want != "") {
			t.Errorf("%s is %+v, %v", id, got, known)
		}
	}
	m.add("a", known{position: "1"})
	m.add("b", known{position: "2"})
	m.add("b", known{position: "3"})
	expect("a", "1")
	expect("b", "2")
	m.add("c", known{position: "4"})
	expect("a", "")
	expect("b", "2")
	expect("c", "4")
}
