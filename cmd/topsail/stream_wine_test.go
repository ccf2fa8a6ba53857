//go:build system

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/require"
)

// TestWines is the example of wines, as its README has it: records in, results out, and
// the model replaced in mid-stream.
func TestWines(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		dir, config := wineFolder(t, b)
		b.create(t, "wine.records", "wine.results", "wine.dead", "wine.updates", "wine.deployed", "wine.refused")
		records := wineRecords(t, dir, 3000)
		in := start(t, dir, config, "--gateway-cache-bytes", "0").ready()
		const third = 1000
		feed(t, b, dir, records[:third])
		in.until("results of version 1", func() bool { return len(tasted(t, b)) == third })
		feed(t, b, dir, records[third:2*third])
		person := operate(t, in)
		second := filepath.Join(dir, "topsail.toml")
		require.NoError(t, os.WriteFile(second, []byte(uncommented(config)), 0o600))
		person.do("apply", "-f", second, "--yes")
		person.ready("wine:2", 1)
		feed(t, b, dir, append(records[2*third:], "not a wine"))
		in.until("all results", func() bool { return len(tasted(t, b)) == len(records) })
		got := tasted(t, b)
		for i := range records {
			r := got[fmt.Sprintf("wine-%d", i)]
			quality, err := strconv.ParseFloat(string(r.Output), 64)
			if err != nil || quality < 2 || quality > 9 || r.Default || (r.Version == "2") != (r.Confidence != nil) {
				t.Fatalf("the result of wine %d is %+v", i, r)
			}
			if i < third && r.Version != "1" || i >= 2*third && r.Version != "2" {
				t.Fatalf("wine %d was tasted by version %s", i, r.Version)
			}
		}
		in.until("the dead letter", func() bool { return len(b.read(t, "wine.dead")) == 1 })

		// Another model by a message.
		update := exec.Command("python3", "update.py", "3", "Neighbours")
		update.Dir = dir
		message, err := update.Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Write(t.Context(), []serving.StreamMessage{{Stream: "wine.updates", Value: bytes.TrimSpace(message)}}); err != nil {
			t.Fatal(err)
		}
		in.until("the acknowledgement", func() bool { return len(b.read(t, "wine.deployed")) == 1 })
		person.ready("wine:3", 1)
		more := wineRecords(t, dir, len(records)+100)[len(records):]
		feed(t, b, dir, more)
		in.until("results of version 3", func() bool { return len(tasted(t, b)) == len(records)+len(more) })
		got = tasted(t, b)
		for i := range more {
			if r := got[fmt.Sprintf("wine-%d", len(records)+i)]; r.Version != "3" || r.Confidence == nil || r.Default {
				t.Fatalf("a wine after the update is %+v", r)
			}
		}
	})
}

// wineFolder is a copy of the example, and its configuration for the broker.
func wineFolder(t *testing.T, b *streamBroker) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"wine.py", "wines.py", "update.py", "topsail.toml"} {
		text, err := os.ReadFile(filepath.Join("../../examples/wine", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		config = string(text)
	}
	config = regexp.MustCompile(`(?m)^(# )?input_length = 11$`).ReplaceAllString(config, fmt.Sprintf("$0\n${1}env = { TOPSAIL_TEST = %q, PYTHONPATH = %q }", dir, sdk(t)))
	if b.kafka() {
		config = strings.NewReplacer(`# broker = "kafka"`, `broker = "kafka"`, "# addrs =", "addrs =", `broker = "redis"`, "", `addrs = ["127.0.0.1:6379"]`, "").Replace(config)
	}
	addrs := regexp.MustCompile(`(?m)^addrs = .*$`)
	if len(addrs.FindAllString(config, -1)) != 2 { // of both streams
		t.Fatalf("the example says addrs otherwise:\n%s", config)
	}
	return dir, addrs.ReplaceAllString(config, fmt.Sprintf("addrs = [%q]", b.addrs[0]))
}

// uncommented has the second version.
func uncommented(config string) string {
	before, after, _ := strings.Cut(config, "# [[model]]\n")
	block, rest, _ := strings.Cut(after, "\n\n")
	return before + "[[model]]\n" + strings.ReplaceAll(block, "# ", "") + "\n\n" + rest
}

func wineRecords(t *testing.T, dir string, n int) []string {
	t.Helper()
	cmd := exec.Command("python3", "wines.py", strconv.Itoa(n))
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("wines.py: %v\n%s", err, errs.String())
	}
	var records []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		records = append(records, lines.Text())
	}
	if len(records) != n {
		t.Fatalf("%d wines of %d", len(records), n)
	}
	return records
}

// feed brings records into the stream: into Redis by the command of the README.
func feed(t *testing.T, b *streamBroker, dir string, records []string) {
	t.Helper()
	if b.kafka() {
		var messages []serving.StreamMessage
		for _, r := range records {
			messages = append(messages, serving.StreamMessage{Stream: "wine.records", Value: []byte(r)})
		}
		if err := b.Write(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		return
	}
	_, port, _ := strings.Cut(b.server.Addr, ":")
	cmd := exec.Command("sh", "-c", `sed "s/.*/XADD wine.records * value '&'/" | redis-cli -p "$0" > /dev/null`, port)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.Join(records, "\n")+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// tasted are the results, each of another wine.
func tasted(t *testing.T, b *streamBroker) map[string]records.Response {
	t.Helper()
	all := map[string]records.Response{}
	for _, r := range b.read(t, "wine.results") {
		result, err := records.ParseResponse(r.Value, stream.JSON)
		require.NoError(t, err)
		if _, twice := all[result.UUID]; twice {
			t.Fatalf("%s has two results", result.UUID)
		}
		all[result.UUID] = result
	}
	return all
}
