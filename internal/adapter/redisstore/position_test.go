package redisstore

import (
	"errors"
	"strings"
	"testing"
)

// TestFollows holds what a Store that knows revision 5 of an epoch makes of what Redis holds.
func TestFollows(t *testing.T) {
	known := position{Epoch: "e", Revision: 5, Write: "w"}
	at := func(epoch string, revision uint64) position { return position{epoch, revision, "other"} }
	for name, test := range map[string]struct {
		known position
		r     reading
		lost  string // what it holds instead; "": the Store follows
	}{
		"nothing, and nothing is known": {position{}, reading{}, ""},
		"a catalog, and none is known":  {position{}, reading{at: at("f", 1)}, ""},
		"the same":                      {known, reading{at: known, writer: "w"}, ""},
		"newer":                         {known, reading{at: at("e", 9), writer: "w"}, ""},
		"newer than the log tells":      {known, reading{at: at("e", 9)}, ""},
		"flushed":                       {known, reading{}, "no catalog"},
		"flushed and written":           {known, reading{at: at("f", 2)}, "another catalog, at revision 2"},
		"rewound":                       {known, reading{at: at("e", 4)}, "revision 4"},
		"rewound and written":           {known, reading{at: at("e", 7), writer: "x"}, "revision 7, which was written after an older one"},

		"all of the epoch lives on":  {known, reading{at: at("f", 6), epochHistory: epochHistory{"e": {To: "f"}}}, ""},
		"it lives on up to ours":     {known, reading{at: at("f", 6), epochHistory: epochHistory{"e": {To: "f", UpTo: 5}}}, ""},
		"it lives on up to an older": {known, reading{at: at("f", 6), epochHistory: epochHistory{"e": {To: "f", UpTo: 4}}}, "another catalog, at revision 6"},
		"two epochs further":         {known, reading{at: at("g", 7), epochHistory: epochHistory{"e": {To: "f"}, "f": {To: "g", UpTo: 1}}}, ""},
		"epochs of others":           {known, reading{at: at("g", 7), epochHistory: epochHistory{"f": {To: "g"}}}, "another catalog, at revision 7"},
		"an epoch that ends nowhere": {known, reading{at: at("g", 7), epochHistory: epochHistory{"e": {To: "f"}}}, "another catalog, at revision 7"},
		"epochs in a circle":         {known, reading{at: at("g", 7), epochHistory: epochHistory{"e": {To: "f"}, "f": {To: "e"}}}, "another catalog, at revision 7"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.r.follows(test.known)
			if test.lost == "" {
				if err != nil {
					t.Errorf("got %v, want that it follows", err)
				}
				return
			}
			if want := "it holds " + test.lost; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "held revision 5 before") {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestJoin: of an epoch that is taken back only what was known lives on; of what Redis held instead, all does.
func TestJoin(t *testing.T) {
	old := epochHistory{"d": {To: "e"}}
	l := join(&snapshot{at: position{Epoch: "e", Revision: 5}, epochHistory: old}, &reading{at: position{Epoch: "x", Revision: 9}}, "f", 5)
	for p, want := range map[position]bool{
		{Epoch: "e", Revision: 5}:   true,
		{Epoch: "e", Revision: 6}:   false,
		{Epoch: "x", Revision: 900}: true,
		{Epoch: "d", Revision: 3}:   true,
		{Epoch: "y", Revision: 1}:   false,
	} {
		if got := l.leads(p, "f"); got != want {
			t.Errorf("revision %d of epoch %s lives on: %v, want %v", p.Revision, p.Epoch, got, want)
		}
	}
	if len(old) != 1 {
		t.Errorf("the history from before has %d epochs, want 1", len(old))
	}
}
