package config

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/models"
)

func TestStreams(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "streams.toml"), user, map[string]string{"streams-name": "other"})
	equal(t, "process", c.Streaming, Streaming{Name: "other", Only: []string{"wine", "pets", "wine.models"}, DrainTimeout: 3 * time.Second})
	equal(t, "in Kafka", c.Streams[0], &Stream{
		Name: "wine", App: "wine", Apps: map[string]string{"red": "wine", "white": "white-wine"},
		Source: Source{
			Input: []string{"wine.records", "wine.more"}, Output: "wine.results", DeadLetter: "wine.dead",
			Broker: "kafka", Addrs: []string{"10.0.0.8:9092", "10.0.0.9:9092"}, Username: "topsail", PasswordFile: "/etc/topsail/kafka.password",
			Mechanism: "SCRAM-SHA-512", TLS: true, Group: "wine-tasters", Takeover: 20 * time.Second,
		},
		Format: stream.Protobuf, Spread: stream.SpreadKey, HotKeys: map[string]float64{"merlot": 4}, HotShare: 0.5,
		Batch: 500, Concurrency: 100, MaxRecordBytes: 65536, Patience: time.Minute, Defaults: "dead_letter",
	})
	equal(t, "in Redis", c.Streams[1], &Stream{
		Name: "pets", App: "pets", Ordered: true, HotShare: 0.25,
		Source: Source{
			Input: []string{"{pets}:in"}, Output: "{pets}:out", DeadLetter: "{pets}:dead",
			Broker: "redis", Addrs: []string{"10.0.0.5:26379"}, Master: "main", Delete: true, MaxLen: 100_000,
			Group: "topsail-pets", Takeover: 10 * time.Second,
		},
		Batch: 256, Concurrency: 256, MaxRecordBytes: 1 << 20, Patience: 30 * time.Second, Defaults: "result",
	})
	equal(t, "the job", c.Streams[0].Job(), stream.Config{
		Name: "wine", Streams: []string{"wine.records", "wine.more"}, App: "wine", Apps: map[string]string{"red": "wine", "white": "white-wine"},
		Output: "wine.results", DeadLetter: "wine.dead", Format: stream.Protobuf,
		Spread: stream.Spread{By: stream.SpreadKey, HotKeys: map[string]int{"merlot": 4}, HotShare: 0.5},
		Batch:  500, Concurrency: 100, MaxRecord: 65536, Patience: time.Minute, NoDefaults: true,
	})
	var served []string
	data, updates := c.Served()
	for _, s := range data {
		served = append(served, s.Name)
	}
	for _, s := range updates {
		served = append(served, s.Name)
	}
	equal(t, "served", served, []string{"wine", "pets", "wine.models"})
}

func TestModelStreams(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "streams.toml"), user, nil)
	equal(t, "in Kafka", c.ModelStreams[0], &ModelStream{
		Name: "wine.models",
		Source: Source{
			Input: []string{"wine.updates"}, Output: "wine.deployed", DeadLetter: "wine.refused",
			Broker: "kafka", Addrs: []string{"10.0.0.8:9092"}, Username: "topsail", PasswordFile: "/etc/topsail/kafka.password",
			Mechanism: "PLAIN", TLS: true, Group: "wine-models", Takeover: 20 * time.Second,
		},
		API: "https://topsail.example:1338", KeyFile: "/etc/topsail/deploy.key", Format: stream.JSON, Locations: []string{"https://models.example/wine/", "file:///srv/models/"},
		Python: "3.11", Batch: 8, Concurrency: 2, MaxRecordBytes: 1 << 20, MaxModelBytes: 1 << 30, Patience: time.Minute,
	})
	equal(t, "in Redis", c.ModelStreams[1], &ModelStream{
		Name: "pets.models",
		Source: Source{
			Input: []string{"pets.updates"}, Output: "pets.deployed", DeadLetter: "pets.refused", Broker: "redis", Delete: true, MaxLen: 1000,
			Addrs: []string{"10.0.0.5:26379"}, Master: "main", Group: "topsail-pets.models", Takeover: 10 * time.Second,
		},
		Batch: 16, Concurrency: 4, MaxRecordBytes: 16 << 20, MaxModelBytes: 4 << 30, Patience: 30 * time.Second,
	})
	equal(t, "the job", c.ModelStreams[0].Job(), models.Config{
		Name: "wine.models", Streams: []string{"wine.updates"}, Output: "wine.deployed", DeadLetter: "wine.refused", Format: stream.JSON,
		Locations: models.Locations{Prefixes: []string{"https://models.example/wine/", "file:///srv/models/"}}, Python: "3.11",
		Batch: 8, Concurrency: 2, MaxRecord: 1 << 20, MaxModel: 1 << 30, Patience: time.Minute,
	})
}
