package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pixels is the size of the large input: an image of 224 by 224 in three colours, as float32.
const pixels = 3 * 224 * 224

// doors compares the protocols by which a gateway can be asked, each with the same queries.
func doors(ctx context.Context, b *bench) ([]figure, error) {
	small, err := b.stack(ctx, "POST /APP/predict", setup{SLO: relaxed, CacheOff: true, Containers: []string{"noop"}})
	if err != nil {
		return nil, err
	}
	inferURL := strings.Replace(small.url, queryPath, "/v2/models/"+appName+"/infer", 1)
	infer := small.asked("infer, JSON", request{url: inferURL, body: []byte(`{"inputs":[{"name":"input","shape":[1,4],"datatype":"FP64","data":[0.1,0.2,0.3,0.4]}]}`)})
	large, err := b.launch(ctx, "images", setup{SLO: relaxed, CacheOff: true, Containers: []string{"noop"}, Images: true})
	if err != nil {
		return nil, err
	}
	imageJSON, imageBinary, err := b.images(large)
	if err != nil {
		return nil, err
	}
	echo, err := b.role(ctx, "echo", setup{})
	if err != nil {
		return nil, err
	}
	few := 16 // connections: each holds some megabytes of an image
	runs, err := alternate(b.Runs,
		b.driver(ctx, small, many), b.driver(ctx, infer, many), b.driver(ctx, imageJSON, few), b.driver(ctx, imageBinary, few),
		func() (drive, error) { return b.driveGRPC(ctx, "gRPC", small.grpc) },
		func() (drive, error) { return b.driveGRPC(ctx, "bare gRPC echo", echo.GRPC) })
	if err != nil {
		return nil, err
	}
	predict, rest, asJSON, asBinary, grpc, bare := runs[0], runs[1], runs[2], runs[3], runs[4], runs[5]
	return []figure{
		sampled("POST /APP/predict, 4 doubles", perSecond, bar{}, predict, rate),
		sampled("infer as JSON, the same", perSecond, bar{}, rest, rate),
		compared("infer as JSON / predict", times, atLeast(0.8), rest, predict, rateOver),
		sampled("infer as JSON, an image of 3 × 224 × 224 float32", perSecond, bar{}, asJSON, rate),
		sampled("infer with binary data, the same", perSecond, bar{}, asBinary, rate),
		compared("binary / JSON", times, atLeast(4), asBinary, asJSON, rateOver),
		sampled("infer with binary data, p99", ms, bar{}, asBinary, p99),
		sampled("gRPC, 4 doubles", perSecond, bar{}, grpc, rate),
		sampled("a bare gRPC echo of the same message", perSecond, bar{}, bare, rate),
		compared("gRPC / bare echo", times, atLeast(0.6), grpc, bare, rateOver),
		sampled("gRPC, p99", ms, bar{}, grpc, p99),
		sampled("default outputs", count, none(), append(append(predict, rest...), append(asJSON, asBinary...)...), defaults),
	}, nil
}

// request is what wrk sends instead of the usual query.
type request struct {
	url    string
	body   []byte
	header int    // bytes of JSON before binary data; 0: all
	raw    bool   // the body is binary data alone
	want   string // part of every right answer; empty: any
}

// asked is a target that is asked in another way.
func (t *target) asked(name string, r request) *target {
	other := *t
	other.name, other.url, other.request = name, r.url, &r
	return &other
}

// images are requests with an image for a target, as JSON and as binary data.
func (b *bench) images(t *target) (asJSON, asBinary *target, err error) {
	url := strings.Replace(t.url, queryPath, "/v2/models/"+appName+"/infer", 1)
	text := fmt.Appendf(nil, `{"inputs":[{"name":"input","shape":[1,%d],"datatype":"FP32","data":[`, pixels)
	var raw []byte
	for i := range pixels {
		x := float32(i%256) / 255
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendFloat(text, float64(x), 'g', -1, 32)
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	header := fmt.Appendf(nil, `{"inputs":[{"name":"input","shape":[1,%d],"datatype":"FP32","parameters":{"binary_data_size":%d}}]}`, pixels, len(raw))
	return t.asked("image, JSON", request{url: url, body: append(text, "]}]}"...)}),
		t.asked("image, binary", request{url: url, body: append(header, raw...), header: len(header)}), nil
}

// environment is what the script of wrk is told of a request, whose body is in a file.
func (r *request) environment(dir string) ([]string, error) {
	file := filepath.Join(dir, "body")
	if err := os.WriteFile(file, r.body, 0o600); err != nil {
		return nil, err
	}
	return []string{"BENCH_BODY_FILE=" + file, "BENCH_JSON_BYTES=" + strconv.Itoa(r.header), "BENCH_RAW=" + strconv.FormatBool(r.raw), "BENCH_WANT=" + r.want}, nil
}
