//go:build edge

package edge

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
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

// inferForm says what an error of the Open Inference Protocol lacks.
func inferForm(body string) error {
	var said struct{ Error string }
	if err := json.Unmarshal([]byte(body), &said); err != nil || said.Error == "" {
		return fmt.Errorf("it is no error of the protocol: %w", err)
	}
	return nil
}

// behind is a request with data behind its JSON.
func behind(model, text, data string, header ...string) string {
	return post("/v2/models/"+model+"/infer", text+data, append(header, fmt.Sprintf("Inference-Header-Content-Length: %d", len(text)))...)
}

// vector is a request for the app target whose one input has more members.
func vector(more string) string { return `{"inputs":[{"name":"input",` + more + `}]}` }

// malformedInfer is requests of the Open Inference Protocol that are wrong: sizes that do not add up, texts
// that lie, shapes that overflow, and too much of anything.
func malformedInfer() attack {
	eight := strings.Repeat("\x00", 8)
	list := []refused{}
	add := func(name, request string, status int, says string) {
		list = append(list, refused{name, request, status, says})
	}
	for _, one := range []struct{ name, more, data, says string }{
		{"more bytes than there are", `"shape":[1,2],"datatype":"FP64","parameters":{"binary_data_size":16}`, eight, "8 bytes are left"},
		{"fewer bytes than there are", `"shape":[1,1],"datatype":"FP64","parameters":{"binary_data_size":8}`, eight + eight, "is followed by 8 bytes"},
		{"bytes that the shape does not need", `"shape":[1,1],"datatype":"FP64","parameters":{"binary_data_size":16}`, eight + eight, "FP64[1,1] needs 8"},
		{"a size below 0", `"shape":[1,1],"datatype":"FP64","parameters":{"binary_data_size":-8}`, eight, "must be a number of bytes"},
		{"a size that overflows", `"shape":[1,1],"datatype":"FP64","parameters":{"binary_data_size":18446744073709551624}`, eight, ""},
		{"a size and data", `"shape":[1,1],"datatype":"FP64","data":[1],"parameters":{"binary_data_size":8}`, eight, "has data and a binary_data_size"},
		{"a text that is longer than the rest", `"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":8}`, "\xff\xff\xff\xffabcd", "ends before the last"},
		{"texts that are not there", `"shape":[2000000000],"datatype":"BYTES","parameters":{"binary_data_size":8}`, eight, "ends before the last"},
		{"bytes behind the last text", `"shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":8}`, "\x01\x00\x00\x00abcd", "follow the last"},
		{"a shape that overflows to 0", `"shape":[65536,65536,65536,65536],"datatype":"FP64","parameters":{"binary_data_size":0}`, "", "more than 2^31 elements"},
		{"a shape that overflows to 8", `"shape":[4294967297,1],"datatype":"FP64","parameters":{"binary_data_size":8}`, eight, "shape"},
		{"a shape below 0", `"shape":[-1,-1],"datatype":"FP64","parameters":{"binary_data_size":8}`, eight, "shape"},
		{"a hundred dimensions", `"shape":[1` + strings.Repeat(",1", 99) + `],"datatype":"FP64","parameters":{"binary_data_size":8}`, eight, "more than 8 dimensions"},
		{"an unknown type", `"shape":[1,1],"datatype":"FP128","parameters":{"binary_data_size":16}`, eight + eight, "unknown"},
		{"a long type", `"shape":[1,1],"datatype":"` + strings.Repeat("F", 1_000_000) + `","parameters":{"binary_data_size":8}`, eight, "at most 256 bytes"},
	} {
		add(one.name, behind("target", vector(one.more), one.data), 400, one.says)
	}
	one := `{"name":"input","shape":[1,1],"datatype":"FP64","data":[1]}`
	for _, header := range []string{"-1", "x", "1e3", "999999999999999999999", "1000"} {
		add("a header of "+header, post("/v2/models/target/infer", vector(`"shape":[1,1],"datatype":"FP64","data":[1]`), "Inference-Header-Content-Length: "+header), 400, "Inference-Header-Content-Length")
	}
	add("half of the JSON is data", post("/v2/models/target/infer", vector(`"shape":[1,1],"datatype":"FP64","data":[1]`), "Inference-Header-Content-Length: 20"), 400, "")
	add("10,000 tensors", post("/v2/models/target/infer", `{"inputs":[`+strings.Repeat(one+",", 9_999)+one+`]}`), 400, "more than 64")
	add("10,000 outputs", post("/v2/models/target/infer", `{"inputs":[`+one+`],"outputs":[`+strings.Repeat(`{"name":"output"},`, 9_999)+`{"name":"output"}]}`), 400, "more than 64")
	add("100,000 rows", post("/v2/models/target/infer", vector(`"shape":[100000,1],"datatype":"FP64","data":[`+strings.Repeat("1,", 99_999)+`1]`)), 400, "4096")
	add("two billion rows of nothing", post("/v2/models/target/infer", vector(`"shape":[2000000000,0],"datatype":"FP64","data":[]`)), 400, "")
	add("a type that the app does not take", post("/v2/models/target/infer", vector(`"shape":[1,1],"datatype":"FP32","data":[1]`)), 400, "FP64")
	add("inputs of one name", post("/v2/models/named/infer", `{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP64","data":[1]},{"name":"x","shape":[1,1],"datatype":"FP64","data":[1]}]}`), 400, "")
	add("rows of different numbers", post("/v2/models/named/infer", `{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP64","data":[1]},{"name":"t","shape":[2],"datatype":"BYTES","data":["a","b"]}]}`), 400, "rows")
	add("deep data", post("/v2/models/target/infer", vector(`"shape":[1,1],"datatype":"FP64","data":`+strings.Repeat("[", 1_000_000))), 400, "")
	add("deep parameters", post("/v2/models/target/infer", `{"parameters":{"x":`+strings.Repeat("[", 1_000_000)+`}`), 400, "")
	add("an unknown output", post("/v2/models/target/infer", `{"inputs":[`+one+`],"outputs":[{"name":"x"}]}`), 400, "unknown")
	add("no such version", post("/v2/models/target/versions/7/infer", `{"inputs":[`+one+`]}`), 404, "does not exist")
	add("no such model", post("/v2/models/nobody/infer", `{"inputs":[`+one+`]}`), 404, "no app of this name")
	add("a bomb", post("/v2/models/target/infer", gzipped(`{"inputs":[`+strings.Repeat(" ", 17<<20)+`]}`), "Content-Encoding: gzip"), 413, "")
	add("a bomb behind the JSON", behind("target", gzipped(vector(`"shape":[1,1],"datatype":"FP64","parameters":{"binary_data_size":8}`)+strings.Repeat("\x00", 17<<20)), "", "Content-Encoding: gzip"), 413, "")
	return each("wrong requests of the Open Inference Protocol", list, inferForm)
}

// heavy is clients that send a vector of a million zeros in a few bytes, and a million messages.
func heavy() attack {
	text := vector(`"shape":[1,1000000],"datatype":"FP64","parameters":{"binary_data_size":8000000}`)
	tensors := post("/v2/models/target/infer", gzipped(text+strings.Repeat("\x00", 8_000_000)), "Content-Encoding: gzip", fmt.Sprintf("Inference-Header-Content-Length: %d", len(text)))
	messages := post("/openai/v1/chat/completions", gzipped(`{"model":"chat","messages":[`+strings.Repeat("0,", 1_000_000)+`0]}`), "Content-Encoding: gzip")
	return repeated("4 send tensors of 8 MB and a million messages", 4, time.Second, tensors, messages)
}
