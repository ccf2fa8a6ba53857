//go:build servers

package servers

import (
	"testing"
	"time"
)

// A Kafka starts, is killed and stopped, and comes back on its data each time.
func TestKafkaComesBack(t *testing.T) {
	port, err := FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	kafka, err := Kafka(t.TempDir(), port, KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("formatted in %v", time.Since(began).Round(time.Millisecond))
	t.Cleanup(kafka.Kill)
	for _, end := range []func(){kafka.Kill, kafka.Stop, kafka.Kill} {
		began := time.Now()
		if err := kafka.Start(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, kafka.LogTail())
		}
		t.Logf("ready in %v", time.Since(began).Round(time.Millisecond))
		end()
		if kafka.Running() {
			t.Fatal("it runs on")
		}
	}
}
