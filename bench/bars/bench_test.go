package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestVariantsTakeTurns(t *testing.T) {
	var order strings.Builder
	n := 0
	variant := func(name string) func() (int, error) {
		return func() (int, error) {
			order.WriteString(name)
			n++
			return n, nil
		}
	}
	samples, err := alternate(4, variant("a"), variant("b"), variant("c"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := order.String(), "abc"+"bca"+"cab"+"abc"; got != want {
		t.Errorf("the order was %s, want %s", got, want)
	}
	for i, want := range [][]int{{1, 6, 8, 10}, {2, 4, 9, 11}, {3, 5, 7, 12}} {
		if !slices.Equal(samples[i], want) {
			t.Errorf("variant %d got %v, want %v", i, samples[i], want)
		}
	}
}

func TestAFailureEndsTheRounds(t *testing.T) {
	calls, broken := 0, errors.New("broken")
	_, err := alternate(3, func() (int, error) {
		calls++
		return 0, broken
	})
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func TestChooseCases(t *testing.T) {
	names := func(only string) string {
		cases, err := chooseCases(only)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, c := range cases {
			names = append(names, c.name)
		}
		return strings.Join(names, ",")
	}
	for only, want := range map[string]string{
		"all":         caseNames(),
		"batch":       "batch",
		"doors":       "doors,mlserver,tensors,before",
		"mlserver":    "mlserver",
		"path,cached": "cached,path",
		"path,lone":   `-only: there is no case "lone": choose of all,` + caseNames(),
	} {
		if got := names(only); got != want {
			t.Errorf("%s: got %q, want %q", only, got, want)
		}
	}
}
