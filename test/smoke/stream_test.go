//go:build smoke

package smoke

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// stream has the cluster predict records of a Kafka, each once.
func (c *cluster) stream(ctx context.Context, t *testing.T) {
	server := startKafka(ctx, t)
	kafka := brokers.KafkaAt(server.Addr)
	for _, topic := range []string{"in", "out", "dead"} {
		require.NoError(t, kafka.CreateTopic(ctx, topic, 4, nil))
	}
	const count = 200
	require.NoError(t, write(ctx, kafka, count))
	file := filepath.Join(c.Dir, "stream.toml")
	config := c.CatalogOf(2, "2", "2") + fmt.Sprintf("\n[[stream]]\nname = 'sums'\napp = 'sum'\ninput = ['in']\noutput = 'out'\ndead_letter = 'dead'\nbroker = 'kafka'\naddrs = [%q]\n", server.Addr)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	serve(ctx, t, c, file)
	var results []serving.StreamRecord
	c.await(ctx, t, func(ctx context.Context) (err error) {
		results, err = kafka.Read(ctx, "out")
		if err == nil && len(results) < count {
			err = fmt.Errorf("%d of %d results", len(results), count)
		}
		return err
	})
	sums(t, results, count)
}

func startKafka(ctx context.Context, t *testing.T) *servers.Server {
	t.Helper()
	port, err := servers.FreePorts(3)
	require.NoError(t, err)
	server, err := servers.Kafka(t.TempDir(), port, servers.KafkaOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	if err := server.Start(ctx); err != nil {
		t.Fatalf("%v\n%s", err, server.LogTail())
	}
	return server
}

// write asks for the sums of i and 1.
func write(ctx context.Context, kafka brokers.Kafka, count int) error {
	var all []serving.StreamMessage
	for i := range count {
		all = append(all, serving.StreamMessage{Stream: "in", Key: fmt.Appendf(nil, "key-%d", i%8), Value: fmt.Appendf(nil, `{"uuid": "%d", "input": [%d, 1]}`, i, i)})
	}
	return kafka.Write(ctx, all)
}

// serve runs the process of streams beside the cluster.
func serve(ctx context.Context, t *testing.T, c *cluster, file string) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Command(ctx, c.Program, "stream", "--config", file, "--consul-announce", "--data-dir", t.TempDir(), "--ops-addr", "127.0.0.1:0")
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; t.Failed() {
			t.Log(err)
		}
	})
}

// sums wants one result of each record, and the right one.
func sums(t *testing.T, results []serving.StreamRecord, count int) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range results {
		result, err := records.ParseResponse(r.Value, stream.JSON)
		require.NoError(t, err)
		i, err := strconv.Atoi(result.UUID)
		if err != nil || i < 0 || i >= count || seen[result.UUID] {
			t.Errorf("not awaited, or a second time: %s", r.Value)
		}
		seen[result.UUID] = true
		if sum, err := strconv.ParseFloat(string(result.Output), 64); err != nil || sum != float64(i+1) || result.Default {
			t.Errorf("the result of %d is %s", i, r.Value)
		}
	}
}
