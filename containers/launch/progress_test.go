//go:build unix

package launch

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/topsail-serving/topsail/test/journal"
)

func TestProgressIsCondensed(t *testing.T) {
	var log journal.Journal
	p := newProgress(&log, "environment 3f2a")
	const output = `Looking in links: /wheels
Collecting numpy<3,>=1.26 (from -r requirements.txt (line 1))
  Downloading numpy-2.1.0-cp311-linux_x86_64.whl (16.3 MB)
Collecting tiny
Building wheels for collected packages: tiny
  Building wheel for tiny (pyproject.toml): started

Installing collected packages: numpy, tiny
Successfully installed numpy-2.1.0 tiny-1.0`
	r := iotest.OneByteReader(strings.NewReader(output))
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		if err != nil {
			break
		}
		if m, err := p.Write(b[:n]); m != n || err != nil {
			t.Fatal(m, err)
		}
	}
	const want = `environment 3f2a: collecting numpy<3,>=1.26, package 1 (0s)
environment 3f2a: downloading numpy-2.1.0-cp311-linux_x86_64.whl (16.3 MB) (0s)
environment 3f2a: collecting tiny, package 2 (0s)
environment 3f2a: building tiny (0s)
environment 3f2a: installing 2 packages (0s)
`
	if log.String() != want {
		t.Errorf("log is\n%s", &log)
	}
	if tail := p.tail(); !strings.HasSuffix(tail, "  Successfully installed numpy-2.1.0 tiny-1.0\n") {
		t.Errorf("tail is %q", tail)
	}
}

func TestProgressIsBounded(t *testing.T) {
	var log journal.Journal
	p := newProgress(&log, "x")
	for range 100 {
		_, _ = p.Write([]byte(strings.Repeat("x", 5*maxLine) + "\n"))
	}
	_, _ = p.Write([]byte("Building wheel for \n"))
	if n := len(p.tail()); n > (maxLine+3)*maxLines {
		t.Errorf("the tail has %d bytes", n)
	}
}
