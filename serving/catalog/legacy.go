package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// nanoseconds are the times that the releases before 2 stored in nanoseconds, without _micros in
// their names. Both are written for as long as processes of such a release may read them, in a
// cluster that is upgraded, and the old ones are read where the new ones are missing.
var nanoseconds = map[string][]string{
	Apps:     {"latency_slo_micros", "cold_start_micros", "cache.ttl_micros"},
	Versions: {"batch.delay_micros", "stages.batch.delay_micros", "scale.idle_micros", "scale.cooldown_up_micros", "scale.cooldown_down_micros"},
}

// upgrade is a document with the names of this release.
func upgrade(doc Document) ([]byte, error) {
	return convert(doc, hoist, func(object map[string]any, name, old string) error {
		n, stored := object[old].(json.Number)
		if _, known := object[name]; known || !stored {
			return nil
		}
		nanos, err := n.Int64()
		if err != nil {
			return fmt.Errorf("%s: %w", old, err)
		}
		object[name] = nanos / int64(time.Microsecond)
		return nil
	})
}

// downgrade is a document with the names of earlier releases beside those of this one.
func downgrade(doc Document) ([]byte, error) {
	return convert(doc, lower, func(object map[string]any, name, old string) error {
		n, ok := object[name].(json.Number)
		if !ok {
			return nil
		}
		micros, err := n.Int64()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		object[old] = micros * int64(time.Microsecond)
		return nil
	})
}

// inContainer are the members of a version that those releases stored in the object container, by
// their names there.
var inContainer = map[string]string{
	"command": "command", "dir": "dir", "env": "env", "addr": "container_addr", "protocol": "protocol", "port": "container_port",
	"connections": "connections", "watch": "watch", "bundle": "bundle", "bundle_url": "bundle_url", "driver": "driver", "image": "image",
	"artifacts": "artifacts", "secrets": "secrets",
}

// hoist takes the members of a version out of its container.
func hoist(version map[string]any) {
	container, _ := version["container"].(map[string]any)
	for old, value := range container {
		if name := inContainer[old]; name != "" && version[name] == nil {
			version[name] = value
		}
	}
	delete(version, "container")
}

// lower puts them there, too.
func lower(version map[string]any) {
	container := map[string]any{}
	for old, name := range inContainer {
		if value, ok := version[name]; ok {
			container[old] = value
		}
	}
	version["container"] = container
}

// convert changes a version by one function, and what may have such a time by the other.
func convert(doc Document, version func(map[string]any), change func(object map[string]any, name, old string) error) ([]byte, error) {
	names := nanoseconds[doc.Kind]
	if len(names) == 0 {
		return doc.JSON, nil
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(doc.JSON))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if doc.Kind == Versions {
		version(tree)
	}
	for _, name := range names {
		if err := within(tree, strings.Split(name, "."), change); err != nil {
			return nil, err
		}
	}
	return json.Marshal(tree)
}

// within changes what is at a path, in each element of lists on the way.
func within(tree any, path []string, change func(object map[string]any, name, old string) error) error {
	switch tree := tree.(type) {
	case []any:
		for _, element := range tree {
			if err := within(element, path, change); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(path) == 1 {
			return change(tree, path[0], strings.TrimSuffix(path[0], "_micros"))
		}
		return within(tree[path[0]], path[1:], change)
	}
	return nil
}
