//go:build edge

package edge

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// state is what a process holds.
type state struct {
	memory      int64 // resident, in bytes
	descriptors int
	goroutines  int
}

// state asks the kernel and, for its goroutines, the process.
func (s *server) state(t *testing.T) state {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the process is gone: %v; output:\n%s", err, tail(s.out.String(), 30))
	}
	goroutines, err := s.series("go_goroutines")
	if err != nil {
		t.Fatal(err)
	}
	return state{resident(s.cmd.Process.Pid), len(files), int(goroutines)}
}

// resident is the memory of a process that is in RAM; 0 of one that is gone.
func resident(pid int) int64 {
	statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

// metrics is the page of the ops port, each time on a connection of its own.
func (s *server) metrics() ([]byte, error) {
	scheme := "http://"
	if s.tls != nil {
		scheme = "https://"
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: s.tls, DisableKeepAlives: true}}
	response, err := client.Get(scheme + s.ops + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// series is the sum of the series whose names begin so.
func (s *server) series(name string) (sum float64, err error) {
	page, err := s.metrics()
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, name) {
			value, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			sum += value
		}
	}
	return sum, err
}

// peak follows the memory of a process until stop is called, which says the most of it.
func peak(pid int) (stop func() int64) {
	ending, most := make(chan struct{}), make(chan int64)
	go func() {
		top := resident(pid)
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				top = max(top, resident(pid))
			case <-ending:
				tick.Stop()
				most <- top
				return
			}
		}
	}()
	return func() int64 { close(ending); return <-most }
}
