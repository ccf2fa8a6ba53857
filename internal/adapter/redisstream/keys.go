package redisstream

import (
	"fmt"
	"strings"
)

// key is the name of a key of a group about a stream, in the stream's hash slot.
func key(stream, group, what string) string {
	if hashTag(stream) == stream {
		stream = "{" + stream + "}"
	}
	return stream + ":topsail:" + group + ":" + what
}

// hashTag is what of a key says which hash slot it is in.
func hashTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// sameTag sees that keys are in one hash slot.
func sameTag(keys []string) error {
	for _, key := range keys {
		if hashTag(key) != hashTag(keys[0]) {
			return fmt.Errorf("in a Redis Cluster the streams of a group and of its results need one hash tag, such as {wine}:in and {wine}:out, unlike %q and %q", keys[0], key)
		}
	}
	return nil
}
