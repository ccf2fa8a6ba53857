package rest

import "testing"

func FuzzParseTags(f *testing.F) {
	for _, seed := range []string{`"a", W/"b"`, `*`, `"`, `"a" "b"`, `,`, `W/`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTags([]string{text}, "If-Match")
		if err != nil {
			return
		}
		for _, tag := range append(got.tags, got.weak...) {
			again, err := parseTags([]string{tag}, "If-Match")
			if err != nil || len(again.tags) != 1 || again.tags[0] != tag {
				t.Fatalf("%q of %q comes back as %v, error %v", tag, text, again, err)
			}
		}
	})
}
