package contract

import "testing"

// runner runs a test of a suite: plainly, or synctest.Test, in a bubble with virtual time.
type runner func(t *testing.T, test func(t *testing.T))

func plainly(t *testing.T, test func(t *testing.T)) { test(t) }
