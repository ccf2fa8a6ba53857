package load

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func reader(text string) *bufio.Reader {
	return bufio.NewReaderSize(strings.NewReader(text), maxLine)
}

func TestReadMessage(t *testing.T) {
	r := reader("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX: y\r\n\r\nhello" +
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length:0\r\nConnection: Close\r\n\r\n")
	m, err := readMessage(r, nil)
	if err != nil || m.status != 200 || string(m.body) != "hello" || m.closes {
		t.Fatalf("first: %+v, %v", m, err)
	}
	m, err = readMessage(r, m.body)
	if err != nil || m.status != 503 || len(m.body) != 0 || !m.closes {
		t.Fatalf("second: %+v, %v", m, err)
	}
	if _, err = readMessage(r, nil); err != io.EOF {
		t.Fatalf("third: %v, want io.EOF", err)
	}
}

func TestReadMessageRefuses(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{"HTTP/1.1 200 OK\r\n\r\n", errHTTP},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", errHTTP},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errHTTP},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", errHTTP},
		{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxLine) + "\r\n\r\n", errHTTP},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\r\nContent-", io.EOF},
	} {
		if _, err := readMessage(reader(c.text), nil); !errors.Is(err, c.want) {
			t.Errorf("%.60q: %v, want %v", c.text, err, c.want)
		}
	}
}

func TestStatusOf(t *testing.T) {
	for line, want := range map[string]int{
		"HTTP/1.1 200 OK": 200, "HTTP/1.0 404": 404, "HTTP/1.1 2x0": 0, "HTTP/2 200": 0, "HTTP/1.1": 0, "": 0,
	} {
		if got := statusOf([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX: y\r\n\r\nhello")
	f.Add(noopReply)
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := readMessage(reader(text), nil)
		if err != nil {
			return
		}
		if !strings.Contains(text, string(m.body)) {
			t.Errorf("body %q is not in %q", m.body, text)
		}
	})
}
