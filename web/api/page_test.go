package api

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
			p, err := pageOf(r, all, func(s string) string { return s }, func(s string) string { return s })
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

func TestPagesThatAreRefused(t *testing.T) {
	w := having(t)
	for _, query := range []string{"limit=0", "limit=5001", "limit=x", "limit=1e2", "limit=-1", "cursor=%25", "cursor=a", "cursor=_w", "cursor=YQ==", "cursor=YR", "cursor=Y%0AQ"} {
		for _, path := range []string{"/apps", "/models", "/models/m/versions", "/keys", "/artifacts", "/audit"} {
			expectCode(t, w.ask("GET", path+"?"+query, ""), 400, "invalid")
		}
	}
	expect(t, w.ask("GET", "/apps?limit=1", ""), 200, `"name":"a"`, `"next":"YQ"`, "!", `"name":"b"`)
	expect(t, w.ask("GET", "/apps?limit=1&cursor=YQ", ""), 200, `"name":"b"`, "!", `"name":"a"`, `"next"`)
	expect(t, w.ask("GET", "/apps?cursor="+cursor("zz"), ""), 200, `"items":[]`)
}

func FuzzCursor(f *testing.F) {
	f.Add("YQ")
	f.Add("")
	f.Add("_w")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := parseCursor(text)
		if err == nil && cursor(name) != text {
			t.Fatalf("%q is read as %q, which is written %q", text, name, cursor(name))
		}
		if back, err := parseCursor(cursor(text)); len(text) < 700 && err == nil && back != text {
			t.Fatalf("%q comes back as %q", text, back)
		}
	})
}
