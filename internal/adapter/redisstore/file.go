package redisstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// The snapshot file is a line with the format, the CRC-32C and the length of what
// follows, and then a fileContent as JSON.
const (
	fileHeader = "topsail-snapshot %d %08x %d\n"
	fileFormat = 1
)

type fileContent struct {
	position
	Epochs    epochHistory   `json:"lineage,omitempty"`
	Documents []fileDocument `json:"documents"`
}

type fileDocument struct {
	Kind string          `json:"kind"`
	Key  string          `json:"key"`
	JSON json.RawMessage `json:"json"`
}

func encodeFile(snap *snapshot) ([]byte, error) {
	docs, err := catalog.Diff(&serving.Catalog{}, snap.catalog)
	if err != nil {
		return nil, err
	}
	content := fileContent{position: snap.at, Epochs: snap.epochHistory}
	for _, doc := range docs {
		content.Documents = append(content.Documents, fileDocument{doc.Kind, doc.Key, doc.JSON})
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, fileHeader, fileFormat, checksum(body), len(body)), body...), nil
}

func decodeFile(data []byte) (*snapshot, error) {
	line, body, ok := bytes.Cut(data, []byte("\n"))
	var version, length int
	var sum uint32
	if _, err := fmt.Sscanf(string(line)+"\n", fileHeader, &version, &sum, &length); !ok || err != nil {
		return nil, errors.New("it does not begin as a snapshot does")
	}
	switch {
	case version > fileFormat:
		return nil, fmt.Errorf("its format is %d, and this topsail knows up to %d", version, fileFormat)
	case length != len(body):
		return nil, fmt.Errorf("it has %d bytes of %d", len(body), length)
	case sum != checksum(body):
		return nil, errors.New("its checksum does not match")
	}
	var content fileContent
	if err := json.Unmarshal(body, &content); err != nil {
		return nil, err
	}
	if content.Epoch == "" {
		return nil, errors.New("it names no epoch")
	}
	cat, err := catalog.Decode(content.Revision, func(yield func(catalog.Document) bool) {
		for _, doc := range content.Documents {
			if !yield(catalog.Document{Kind: doc.Kind, Key: doc.Key, JSON: doc.JSON}) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return newSnapshot(cat, content.position, content.Epochs), nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
