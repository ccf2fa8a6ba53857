package recent

import "testing"

// TestMemory keeps as many ids as it has room for, the last ones, and each as it came first.
func TestMemory(t *testing.T) {
	m := New[int](2)
	expect := func(id string, want int) {
		t.Helper()
		if got, known := m.Of(id); got != want || known != (want > 0) {
			t.Errorf("%s is %d, %v", id, got, known)
		}
	}
	m.Add("a", 1)
	m.Add("b", 2)
	m.Add("b", 3)
	expect("a", 1)
	expect("b", 2)
	m.Add("c", 4)
	expect("a", 0)
	expect("b", 2)
	expect("c", 4)
}
