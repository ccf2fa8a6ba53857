// Package testterm gives tests a terminal.
package testterm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Open opens a pair that the test closes: what a person sees and types, and the terminal
// of the program, with so many columns and rows.
func Open(t testing.TB, columns, rows uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return person, program
}

// ReadUntil reads what the person sees, up to an end.
func ReadUntil(t testing.TB, person *os.File, end string) string {
	t.Helper()
	if err := person.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		t.Fatal(err)
	}
	var seen []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(seen), end); seen = append(seen, one[0]) {
		if _, err := person.Read(one); err != nil {
			t.Fatalf("%v after %q", err, seen)
		}
	}
	return string(seen)
}
