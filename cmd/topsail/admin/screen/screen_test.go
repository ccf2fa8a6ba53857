package screen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestUnits(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct{ got, want string }{
		{Ago(now, time.Time{}), ""}, {Ago(now, now), "0 s ago"}, {Ago(now, now.Add(-119*time.Second)), "119 s ago"},
		{Ago(now, now.Add(-2*time.Minute)), "2 min ago"}, {Ago(now, now.Add(-47*time.Hour)), "47 h ago"}, {Ago(now, now.Add(-48*time.Hour)), "2 d ago"},
		{Ago(now, now.Add(time.Hour)), "in 60 min"},
		{Micros(0), ""}, {Micros(850), "850 µs"}, {Micros(1840), "1.84 ms"}, {Micros(48_300), "48.3 ms"}, {Micros(2_000_000), "2 s"}, {Micros(123_456_789), "123 s"},
		{Bytes(0), "0 B"}, {Bytes(999), "999 B"}, {Bytes(1000), "1 kB"}, {Bytes(1_234_567), "1.23 MB"}, {Bytes(999_999), "1 MB"}, {Bytes(5e15), "5000 TB"},
		{Number(0), "0"}, {Number(0.12345), "0.123"}, {Number(1), "1"}, {Number(12.345), "12.3"}, {Number(100), "100"}, {Number(1234.5), "1234"}, {Number(-2.5), "-2.5"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// TestShares holds to the file that the web UI's tests read too.
func TestShares(t *testing.T) {
	text, err := os.ReadFile("testdata/shares.json")
	if err != nil {
		t.Fatal(err)
	}
	var all [][2]any
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 10 {
		t.Fatalf("%d shares, %v", len(all), err)
	}
	for _, one := range all {
		if got := Share(one[0].(float64)); got != one[1] {
			t.Errorf("%v is %q, want %q", one[0], got, one[1])
		}
	}
	for missing := 1e-9; missing < 0.5; missing *= 3 {
		if got := Share(1 - missing); strings.HasPrefix(got, "100") {
			t.Errorf("%v is %q", 1-missing, got)
		}
	}
}

// TestNothingIsObeyed holds that whatever comes, a cell is one line without controls.
func TestNothingIsObeyed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, cleaned := range []string{Clean(text), strings.NewReplacer("\n", "", "\t", "").Replace(CleanLines(text))} {
			for _, r := range cleaned {
				if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200f || r == 0xfeff {
					t.Fatalf("%q keeps %U", cleaned, r)
				}
			}
			if !utf8.ValidString(cleaned) {
				t.Fatalf("%q is no UTF-8", cleaned)
			}
		}
	})
	if got := CleanLines("a\tb\r\nc\rd\u2028"); got != "a\tb\nc?d?" {
		t.Errorf("%q", got)
	}
	if got := Clean("äöü 日本 😀\n"); got != "äöü 日本 😀 " {
		t.Errorf("%q", got)
	}
}

// TestTablesAreAligned holds that every cell of a column begins at one place.
func TestTablesAreAligned(t *testing.T) {
	cell := rapid.StringMatching(`[a-zä日]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable("A", "B")
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []string { return []string{cell.Draw(t, "a"), cell.Draw(t, "b")} }), 0, 5).Draw(t, "rows")
		width := 1
		for _, row := range rows {
			table.Row(row...)
			width = max(width, utf8.RuneCountInString(row[0]))
		}
		for i, line := range table.Lines()[1:] {
			second := string([]rune(line)[width+2:])
			if want := rows[i][1]; second != want && (want != "" || second != "-") {
				t.Fatalf("%q does not have %q at %d", line, want, width+2)
			}
		}
	})
}

func TestShort(t *testing.T) {
	if got := Short("äöü", 3) + Short("äöüß", 3); got != "äöüäö…" {
		t.Errorf("%q", got)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	var out bytes.Buffer
	s := New(strings.NewReader(""), &out, &out, func(string) string { return "" })
	if s.Terminal || s.Colour || s.Live || s.Asks || s.Paint("a ready b") != "a ready b" {
		t.Errorf("%+v", s)
	}
	s.Colour = true
	if got := s.Paint("m:1 failed ready unready ready"); got != "m:1 \x1b[31mfailed\x1b[0m ready unready \x1b[32mready\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func TestProgressInLines(t *testing.T) {
	var out bytes.Buffer
	s := New(strings.NewReader(""), &out, &out, func(string) string { return "" })
	p := s.Progress()
	p.Say("half")
	p.Say("half")
	p.Step("all\x1b")
	p.End()
	if out.String() != "half\nall?\n" {
		t.Errorf("%q", out.String())
	}
	if Bar(0.5, 4)+Bar(-1, 2)+Bar(7, 2) != "[##..][..][##]" {
		t.Error(Bar(0.5, 4), Bar(-1, 2), Bar(7, 2))
	}
}

func TestNobodyToAsk(t *testing.T) {
	var out bytes.Buffer
	s := New(strings.NewReader("y\n"), &out, &out, func(string) string { return "" })
	if sure, err := s.Ask(context.Background(), "Sure?"); sure || !errors.Is(err, ErrNoTerminal) || out.Len() > 0 {
		t.Errorf("%v, %v, %q", sure, err, out.String())
	}
}
