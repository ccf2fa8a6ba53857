package rest

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Pages, one after the other, are the list.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.StringN(1, 20, 40), 0, 30, rapid.ID[string]).Draw(t, "names")
		slices.Sort(all)
		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		var got []string
		next := ""
		for first := true; first || next != ""; first = false {
			r := httptest.NewRequest("GET", fmt.Sprintf("/?limit=%d&cursor=%s", limit, url.QueryEscape(next)), nil)
			p, err := PageOf(r, all, func(s string) string { return s }, func(s string) string { return s })
			if err != nil || len(p.Items) > limit || len(p.Items) == 0 && len(all) > 0 {
				t.Fatalf("got %d items, error %v", len(p.Items), err)
			}
			got, next = append(got, p.Items...), p.Next
		}
		if !slices.Equal(got, all) {
			t.Fatalf("got %q, want %q", got, all)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("YQ")
	f.Add("")
	f.Add("_w")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := parseCursor(text)
		if err == nil && Cursor(name) != text {
			t.Fatalf("%q is read as %q, which is written %q", text, name, Cursor(name))
		}
		if back, err := parseCursor(Cursor(text)); len(text) < 700 && err == nil && back != text {
			t.Fatalf("%q comes back as %q", text, back)
		}
	})
}
