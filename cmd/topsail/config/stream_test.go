package config

import (
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
	"github.com/topsail-serving/topsail/stream/models"
	"github.com/topsail-serving/topsail/stream/records"
)

func TestStreams(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "streams.toml"), user, map[string]string{"streams-name": "other"})
	equal(t, "process", c.Streaming, Streaming{Name: "other", Only: []string{"wine", "pets", "wine.models"}, DrainTimeout: 3 * time.Second})
	equal(t, "in Kafka", c.Streams[0], &Stream{
		Name: "wine", App: "wine", Apps: map[string]string{"red": "wine", "white": "white-wine", "any": "wine, white-wine"},
		Source: Source{
			Input: []string{"wine.records", "wine.more"}, Output: "wine.results", DeadLetter: "wine.dead",
			Broker: "kafka", Addrs: []string{"10.0.0.8:9092", "10.0.0.9:9092"}, Username: "topsail", PasswordFile: "/etc/topsail/kafka.password",
			Mechanism: "SCRAM-SHA-512", TLS: true, Group: "wine-tasters", Takeover: 20 * time.Second,
		},
		Format: stream.Protobuf, Spread: records.SpreadKey, HotKeys: map[string]float64{"merlot": 4}, HotShare: 0.5,
		Order: stream.OrderPartition, Batch: 500, CommitEvery: 20 * time.Millisecond, Concurrency: 100, MaxRecordBytes: 65536, Patience: time.Minute, AppPatience: 5 * time.Second, CatchUp: 2 * time.Minute, Defaults: records.DefaultsDeadLetter,
	})
	equal(t, "in Redis", c.Streams[1], &Stream{
		Name: "pets", App: "pets", Ordered: true, HotShare: -1,
		Source: Source{
			Input: []string{"{pets}:in"}, Output: "{pets}:out", DeadLetter: "{pets}:dead",
			Broker: "redis", Addrs: []string{"10.0.0.5:26379"}, Master: "main", Delete: true, MaxLen: 100_000,
			Group: "topsail-pets", Takeover: 10 * time.Second,
		},
		Batch: 256, CommitEvery: 5 * time.Millisecond, Priority: -1, Concurrency: 256, MaxRecordBytes: 1 << 20, Patience: 30 * time.Second, AppPatience: 30 * time.Second, CatchUp: 5 * time.Minute,
	})
	equal(t, "the job", c.Streams[0].Job(), records.Config{
		Config: stream.Config{
			Name: "wine", Streams: []string{"wine.records", "wine.more"}, Output: "wine.results", DeadLetter: "wine.dead", Format: stream.Protobuf,
			Order: stream.OrderPartition, Batch: 500, CommitEvery: 20 * time.Millisecond, MaxRecord: 65536,
		},
		App: "wine", Apps: map[string]string{"red": "wine", "white": "white-wine", "any": "wine, white-wine"},
		Spread:   records.Spread{By: records.SpreadKey, HotKeys: map[string]int{"merlot": 4}, HotShare: 0.5},
		Priority: new(int), Concurrency: 100, Patience: time.Minute, AppPatience: 5 * time.Second, CatchUp: 2 * time.Minute, Defaults: records.DefaultsDeadLetter,
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

func TestTopics(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "streams.toml"), user, nil)
	var job records.Config
	for _, s := range c.Streams {
		if s.Name == "orders" {
			job = s.Job()
			equal(t, "the registry", []string{s.SchemaRegistry, s.SchemaRegistryUsername, s.SchemaRegistryPasswordFile}, []string{"https://registry.example", "topsail", "/etc/topsail/registry.password"})
		}
	}
	no := false
	equal(t, "the routes", job.Routes, []records.Route{
		{App: "fraud-eu", Default: &no, Class: "1", Qualifiers: map[string]string{"reason": "velocity", "certain": "true"}, Output: "orders.alarms"},
		{Class: "fine", Drop: true},
	})
	equal(t, "defaults", job.Defaults, records.DefaultsDrop)
	equal(t, "the topic", job.Topic, &records.Topic{
		Record: mapping.Config{
			Format: mapping.Avro, Inputs: map[string]string{"age": "customer.age", "basket": "items[0].prices"},
			ID: "order.id", Key: "header:shop", App: "region", User: "customer.id", Context: "key:",
		},
		Result: mapping.ResultConfig{
			Value: mapping.WithRecord, Add: map[string]string{"score": "output", "sure": "confidence"}, Format: mapping.Avro, SchemaFile: "/etc/topsail/scored.avsc",
		},
		Registered: true,
	})
}

// TestTopicMistakes are reported with what to do about them.
func TestTopicMistakes(t *testing.T) {
	const stream = "[[stream]]\nname = 's'\napp = 'a'\ninput = ['in']\noutput = 'out'\ndead_letter = 'dead'\nbroker = 'redis'\n"
	for text, want := range map[string]string{
		"[stream.record]\ninput = 'a'":                                                                   "format is missing",
		"[stream.record]\nformat = 'jsn'":                                                                `format "jsn" is unknown`,
		"[stream.record]\nformat = 'json'\ninptu = 'a'":                                                  "did you mean",
		"[stream.record]\nformat = 'json'\ninput = 'a..b'":                                               "a name is missing",
		"[stream.record]\nformat = 'json'\ninput = 'a'\nfields = ['b']":                                  "do not go together",
		"[stream.record]\nformat = 'json'\nschema_file = 'x'":                                            "schema_file and message are for protobuf and avro",
		"[stream.record]\nformat = 'bytes'\nid = 'a.b'":                                                  "has no parts to name",
		"[stream.record]\nformat = 'avro'":                                                               "needs a schema_registry, or a schema_file",
		"[stream.record]\nformat = 'protobuf'\nschema_file = 'x.pb'":                                     "message is missing",
		"[stream.result]\nvalue = 'output'":                                                              "result needs a table [stream.record]",
		"format = 'json'\n[stream.record]\nformat = 'json'":                                              "set the format there alone",
		"schema_registry = 'http://a'":                                                                   "needs a table [stream.record]",
		"schema_registry = 'a:80'\n[stream.record]\nformat = 'avro'":                                     "must be a URL",
		"schema_registry = 'http://a'\nschema_registry_username = 'u'\n[stream.record]\nformat = 'avro'": "go together",
		"[stream.record]\nformat = 'text'\n[stream.result]\nvalue = 'record'":                            "nothing can be added",
		"[stream.record]\nformat = 'json'\n[stream.result]\nvalue = 'record'\nadd = { a = '[x' }":        "brackets hold an index",
		"[stream.record]\nformat = 'json'\n[stream.result]\nadd = { a = 'output' }":                      "add is for value",
		"[stream.record]\nformat = 'json'\n[stream.result]\nformat = 'avro'":                             "schema_file is missing",
		"[stream.record]\nformat = 'json'\n[stream.result]\nformat = 'text'":                             "results are json, protobuf or avro",
		"[[stream.route]]\nclass = 1":                                                                    "each needs an output, or drop = true",
		"[[stream.route]]\noutput = 'in'":                                                                "would be read again forever",
		"[[stream.route]]\napp = 'other'\ndrop = true":                                                   `app "other" is none of the stream's`,
		"defaults = 'nothing'":                                                                           "use result, dead_letter or drop",
	} {
		_, err := loadText(stream+text+"\n", user, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %s", text, err, want)
		}
	}
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
		Python: "3.11", Batch: 8, Concurrency: 2, MaxRecordBytes: 1 << 20, MaxModelBytes: 1 << 30, Patience: time.Minute, KeepVersions: 3,
		Descriptors: []Descriptor{{
			DataType: "red", Model: "wine", Apps: []string{"wine", "any"}, InputType: "doubles", InputLength: 11,
			Requirements: []string{"tensorflow==2.19.0"}, Options: map[string]string{"threads": "2"},
		}},
		Kinds: []OwnKind{{Name: "caffe", Code: "/etc/topsail/caffe.py", Entry: "caffe:Caffe", Requirements: []string{"caffe==1.0"}, ModelType: 3}},
	})
	equal(t, "in Redis", c.ModelStreams[1], &ModelStream{
		Name: "pets.models",
		Source: Source{
			Input: []string{"pets.updates"}, Output: "pets.deployed", DeadLetter: "pets.refused", Broker: "redis", Delete: true, MaxLen: 1000,
			Addrs: []string{"10.0.0.5:26379"}, Master: "main", Group: "topsail-pets.models", Takeover: 10 * time.Second,
		},
		Batch: 16, Concurrency: 4, MaxRecordBytes: 16 << 20, MaxModelBytes: 4 << 30, Patience: 30 * time.Second, KeepVersions: 10,
	})
	equal(t, "all versions", (&ModelStream{}).Job().KeepVersions, models.KeepAll)
	equal(t, "the job", c.ModelStreams[0].Job(), models.Config{
		Config: stream.Config{
			Name: "wine.models", Streams: []string{"wine.updates"}, Output: "wine.deployed", DeadLetter: "wine.refused", Format: stream.JSON,
			Batch: 8, MaxRecord: 1 << 20,
		},
		Locations: models.Locations{Prefixes: []string{"https://models.example/wine/", "file:///srv/models/"}}, Python: "3.11",
		Concurrency: 2, MaxModel: 1 << 30, Patience: time.Minute, KeepVersions: 3,
		Descriptors: []models.Descriptor{models.Descriptor(c.ModelStreams[0].Descriptors[0])}, Kinds: []models.OwnKind{models.OwnKind(c.ModelStreams[0].Kinds[0])},
	})
}
