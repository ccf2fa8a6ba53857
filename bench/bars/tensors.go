package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tensorConnections are over how many each server is asked.
var tensorConnections = [...]int{1, 32, 128}

// tensorObjective is longer than any answer takes: other servers answer late, too.
const tensorObjective = 5 * time.Second

// tensorRun is a server that was asked over each of the numbers of connections.
type tensorRun [len(tensorConnections)]drive

// tensors compares the same model behind several servers, each with one process for it, which gets an image as binary data.
func tensors(ctx context.Context, b *bench) ([]figure, error) {
	servers := []struct {
		name  string
		start func(context.Context) (*target, error)
	}{{"Topsail", b.tensorsTopsail}, {"Triton", b.tensorsTriton}, {"mosec", b.tensorsMosec}, {"KServe", b.tensorsKServe}}
	var names []string
	var variants []func() (tensorRun, error)
	for _, s := range servers {
		names = append(names, s.name)
		variants = append(variants, func() (tensorRun, error) { return b.tensorRun(ctx, s.start) })
	}
	runs, err := alternate(b.Runs, variants...)
	if err != nil {
		return nil, err
	}
	return tensorFigures(names, runs), nil
}

// tensorRun starts a server, asks it and stops it: a process keeps the speed that the layout of its memory has given it.
func (b *bench) tensorRun(ctx context.Context, start func(context.Context) (*target, error)) (run tensorRun, err error) {
	defer func() {
		b.family.stop()
		b.freeShared()
	}()
	t, err := start(ctx)
	if err != nil {
		return run, err
	}
	if err := eventually(ctx, t.answersRight); err != nil {
		return run, fmt.Errorf("%s: %w", t.name, err)
	}
	if _, err := b.wrk.run(ctx, t.url, t.request, some, 1); err != nil {
		return run, fmt.Errorf("%s: %w", t.name, err)
	}
	for i, connections := range tensorConnections {
		if run[i], err = b.drive(ctx, t, connections); err != nil {
			return run, err
		}
	}
	return run, nil
}

// tensorFigures compares the first server with the best of the others, over each of the numbers of connections.
func tensorFigures(names []string, runs [][]tensorRun) (figures []figure) {
	for i, connections := range tensorConnections {
		drives := make([][]drive, len(runs))
		for server := range runs {
			for _, run := range runs[server] {
				drives[server] = append(drives[server], run[i])
			}
		}
		over := "s"
		if connections == 1 {
			over = ""
		}
		over = fmt.Sprintf(", %d connection%s", connections, over)
		each := func(what string, unit unit, read func(drive) float64) {
			for server, name := range names {
				figures = append(figures, sampled(name+over+what, unit, bar{}, drives[server], read))
			}
		}
		fastest := 1 + best(drives[1:], rate)
		frugal := 1 + best(drives[1:], func(d drive) float64 { return -d.cpuOfAll() })
		each("", perSecond, rate)
		figures = append(figures, compared(fmt.Sprintf("%s / the fastest other, %s%s", names[0], names[fastest], over), times, atLeast(1), drives[0], drives[fastest], rateOver))
		each(": p99", ms, p99)
		each(": processor time of an answer", micros, drive.cpuOfAll)
		figures = append(figures, compared(fmt.Sprintf("%s / the other with the least, %s%s: processor time", names[0], names[frugal], over), times, atMost(1), drives[0], drives[frugal], cpuOver))
		figures = append(figures,
			sampled(names[0]+over+": wrong answers and errors", count, none(), drives[0], wrong),
			sampled("the others"+over+": wrong answers and errors", count, bar{}, slices.Concat(drives[1:]...), wrong)) // they do not count as answers
	}
	return figures
}

// best is the variant with the largest median.
func best(variants [][]drive, read func(drive) float64) (at int) {
	most := math.Inf(-1)
	for i, runs := range variants {
		if m := sampled("", count, bar{}, runs, read).Median(); m > most {
			most, at = m, i
		}
	}
	return at
}

// cpuOver compares processor times of an answer.
func cpuOver(run, other drive) float64 { return run.cpuOfAll() / other.cpuOfAll() }

// rightTensor is what the model finds in the image, as all servers write it.
const rightTensor = "0.00390625,0.52734375,0.99609375"

// tensorImage is an image whose values can be written exactly.
func tensorImage() (raw []byte) {
	for i := range pixels {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(i%256)/256))
	}
	return raw
}

// rawTensor asks with the image alone.
func rawTensor() *request { return &request{body: tensorImage(), raw: true, want: rightTensor} }

// inferTensor asks with the image as binary data of the Open Inference Protocol.
func inferTensor() *request {
	raw := tensorImage()
	header := fmt.Appendf(nil, `{"inputs":[{"name":"image","shape":[1,3,224,224],"datatype":"FP32","parameters":{"binary_data_size":%d}}]}`, len(raw))
	return &request{body: append(header, raw...), header: len(header), want: rightTensor}
}

// answersRight asks once, and says what is wrong with the answer.
func (t *target) answersRight(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(t.request.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-tensor") // KServe takes octet-stream for JSON
	if t.request.header > 0 {
		request.Header.Set("Content-Type", "application/octet-stream")
		request.Header.Set("Inference-Header-Content-Length", strconv.Itoa(t.request.header))
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err == nil && !bytes.Contains(text, []byte(t.request.want)) {
		err = fmt.Errorf("it answers %s: %.300s", reply.Status, text)
	}
	return err
}

// tensorsPython is the model, which all servers have.
//
//go:embed tensors.py
var tensorsPython string

// tensorsTopsail starts Topsail in local mode. The cache is off, which the others do not have.
func (b *bench) tensorsTopsail(ctx context.Context) (*target, error) {
	const signature = "input_type = \"tensors\"\nsignature = { inputs = [{ name = \"image\", type = \"float32\", shape = [3, 224, 224] }], outputs = [{ name = \"output\", type = \"float32\", shape = [3] }] }\n"
	l, err := b.localModel(ctx, tensorsPython, 1, func(model string) string {
		var text strings.Builder
		fmt.Fprintf(&text, "[[app]]\nname = %q\n%slatency_slo_micros = %d\nmodels = [\"look\"]\ncache = { off = true }\ndefault_errors = true\n", appName, signature, tensorObjective.Microseconds())
		fmt.Fprintf(&text, "[[model]]\nname = \"look\"\nversion = \"1\"\n%scommand = [\"python3\", \"-m\", \"topsail\", %q]\n", signature, model+":predict")
		return text.String()
	})
	if err != nil {
		return nil, err
	}
	return &target{name: "Topsail", url: l.query + "/v2/models/" + appName + "/infer", children: []*child{l.child}, whole: true, request: inferTensor()}, nil
}
