package config

import (
	"testing"
	"time"

	"topsail/stream"
)

func TestStreams(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "streams.toml"), user, map[string]string{"streams-name": "other"})
	equal(t, "process", c.Streaming, Streaming{Name: "other", Only: []string{"wine", "pets"}, DrainTimeout: 3 * time.Second})
	equal(t, "in Kafka", c.Streams[0], &Stream{
		Name: "wine", App: "wine", Apps: map[string]string{"red": "wine", "white": "white-wine"},
		Input: []string{"wine.records", "wine.more"}, Output: "wine.results", DeadLetter: "wine.dead",
		Broker: "kafka", Addrs: []string{"10.0.0.8:9092", "10.0.0.9:9092"}, Username: "topsail", PasswordFile: "/etc/topsail/kafka.password",
		Mechanism: "SCRAM-SHA-512", TLS: true, Group: "wine-tasters", Takeover: 20 * time.Second,
		Format: stream.Protobuf, Spread: stream.SpreadKey, HotKeys: map[string]float64{"merlot": 4}, HotShare: 0.5,
		Batch: 500, Concurrency: 100, MaxRecordBytes: 65536, Patience: time.Minute, Defaults: "dead_letter",
	})
	equal(t, "in Redis", c.Streams[1], &Stream{
		Name: "pets", App: "pets", Input: []string{"{pets}:in"}, Output: "{pets}:out", DeadLetter: "{pets}:dead",
		Broker: "redis", Addrs: []string{"10.0.0.5:26379"}, Master: "main", Ordered: true, Delete: true, MaxLen: 100_000,
		Group: "topsail-pets", Takeover: 40 * time.Second, HotShare: 0.25,
		Batch: 256, Concurrency: 256, MaxRecordBytes: 1 << 20, Patience: 30 * time.Second, Defaults: "result",
	})
	equal(t, "takeover without patience", c.Streams[2].Takeover, 15*time.Second)
	equal(t, "the job", c.Streams[0].Job(), stream.Config{
		Name: "wine", Streams: []string{"wine.records", "wine.more"}, App: "wine", Apps: map[string]string{"red": "wine", "white": "white-wine"},
		Output: "wine.results", DeadLetter: "wine.dead", Format: stream.Protobuf,
		Spread: stream.Spread{By: stream.SpreadKey, HotKeys: map[string]int{"merlot": 4}, HotShare: 0.5},
		Batch:  500, Concurrency: 100, MaxRecord: 65536, Patience: time.Minute, NoDefaults: true,
	})
	var served []string
	for _, s := range c.Served() {
		served = append(served, s.Name)
	}
	equal(t, "served", served, []string{"wine", "pets"})
}
