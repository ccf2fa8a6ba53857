package codec_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// FuzzDecodePredict holds the decoder to one made of encoding/json: they accept
// the same bodies and find the same in them.
func FuzzDecodePredict(f *testing.F) {
	for _, seed := range []string{
		`{"input":[1.5,-2e3,0.1]}`, `{"input":[1,2147483648]}`, `{"input":"a\u00e4\ud83c\udfe0\ud800"}`, `{"input":"QUJDRA=="}`,
		`{"input_batch":[[1],[2.5]],"version":"1","uid":7,"slo_micros":100,"salt":"x","no_cache":true,"context":"é","explain":true}`,
		`{"input_batch":["a","QQ"]}`, `{"inputs":{"input":[1]},"candidate_models":["a","b:2"],"strict":false,"x":1}`, `{"inptu":[1]}`, `{"input_batch":[],"x":[{"y":null}]}`, `{"input":[1],"input":[2]}`, `{"input":[]}`, `[]`, ``, `{"a":1`,
	} {
		for t := serving.Bytes; t <= serving.Strings; t++ {
			f.Add([]byte(seed), uint8(t))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, inputType uint8) {
		it := serving.Bytes + serving.InputType(inputType%5)
		got, err := codec.DecodePredict(body, takes(it), maxBatch)
		want, wantErr := slowDecode(body, it)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q as %v: got error %v, want %v", body, it, err, wantErr)
		}
		if _, typed := errors.AsType[*codec.Error](err); err != nil && !typed {
			t.Fatalf("%q: error of type %T", body, err)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q as %v: got %v, want %v", body, it, got, want)
		}
	})
}

var errRefused = errors.New("refused")

// Escapes that make a surrogate pair, and half of one: each after backslashes that stand for themselves.
var (
	pair     = regexp.MustCompile(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	halfPair = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
)

// slowDecode is the decoder as encoding/json would have it.
func slowDecode(body []byte, t serving.InputType) (p codec.PredictRequest, err error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if !json.Valid(body) || !utf8.Valid(body) || halfPair.Match(pair.ReplaceAll(body, nil)) || depth(body) > 128 {
		return p, errRefused
	}
	members, err := firstMembers(body)
	if err != nil {
		return p, err
	}
	lenient, err := slowLenient(members)
	if err != nil || !lenient && unknown(members, "input", "input_batch", "inputs", "version", "uid", "slo_micros", "salt", "no_cache", "context", "explain", "candidate_models", "strict", "priority") {
		return p, errRefused
	}
	var errs [10]error
	p.Version, errs[0] = slowName(members["version"], false)
	p.User, errs[1] = slowName(members["uid"], true)
	p.Salt, errs[2] = slowName(members["salt"], true)
	p.Timeout, errs[3] = slowTimeout(members["slo_micros"])
	p.NoCache, errs[4] = slowFlag(members["no_cache"])
	p.Context, errs[6] = slowName(members["context"], true)
	p.Explain, errs[7] = slowFlag(members["explain"])
	p.Candidates, errs[8] = slowCandidates(members["candidate_models"])
	p.Priority, errs[9] = slowPriority(members["priority"])
	input, ok := members["input"]
	if named, also := members["inputs"]; also {
		only, err := firstMembers(named)
		if err != nil || ok || len(only) != 1 || only["input"] == nil || keys(named) != 1 {
			return p, errRefused
		}
		input, ok = only["input"], true
	}
	if ok {
		p.Input, errs[5] = slowInput(input, t)
	} else {
		p.Batch, errs[5] = slowBatch(members["input_batch"], t)
	}
	return p, errors.Join(errs[:]...)
}

func slowPriority(raw json.RawMessage) (p int, err error) {
	if raw == nil {
		return 0, nil
	}
	if p, err = strconv.Atoi(string(raw)); err != nil || raw[0] == '-' || p > serving.LowestPriority {
		return 0, errRefused
	}
	return p, nil
}

// slowLenient says whether a body says "strict": false.
func slowLenient(members map[string]json.RawMessage) (bool, error) {
	raw, said := members["strict"]
	strict, err := slowFlag(raw)
	return said && !strict, err
}

func unknown(members map[string]json.RawMessage, known ...string) bool {
	for key := range members {
		if !slices.Contains(known, key) {
			return true
		}
	}
	return false
}

// keys counts the members of an object, equal ones too.
func keys(object json.RawMessage) (n int) {
	d, level := json.NewDecoder(bytes.NewReader(object)), 0
	for {
		token, err := d.Token()
		if err != nil {
			return n
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
			continue
		case json.Delim('}'), json.Delim(']'):
			level--
			continue
		}
		if level == 1 {
			n++
			var skipped json.RawMessage
			_ = d.Decode(&skipped)
		}
	}
}

func slowCandidates(raw json.RawMessage) (ids []serving.ModelID, err error) {
	if raw == nil {
		return nil, nil
	}
	var names []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &names) != nil || len(names) == 0 || len(names) > 256 {
		return nil, errRefused
	}
	for _, raw := range names {
		name, err := slowName(raw, false)
		if err != nil {
			return nil, err
		}
		model, version, _ := strings.Cut(name, ":")
		ids = append(ids, serving.ModelID{Model: model, Version: version})
	}
	return ids, nil
}

func depth(body []byte) (deepest int) {
	decoder, level := json.NewDecoder(bytes.NewReader(body)), 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		deepest = max(deepest, level)
	}
}

// firstMembers returns the members of an object; of equal keys the first.
func firstMembers(body []byte) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errRefused
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		if _, twice := members[key.(string)]; !twice {
			members[key.(string)] = value
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errRefused
	}
	return members, nil
}

func slowString(raw json.RawMessage) (s string, err error) {
	if raw[0] != '"' {
		return "", errRefused
	}
	return s, json.Unmarshal(raw, &s)
}

func slowName(raw json.RawMessage, numbers bool) (s string, err error) {
	if raw == nil {
		return "", nil
	}
	if s, err = slowString(raw); err != nil {
		if !numbers || bytes.ContainsAny(raw, ".eE{[tfn") {
			return "", errRefused
		}
		s = string(raw)
	}
	if len(s) > 256 {
		return "", errRefused
	}
	return s, nil
}

func slowTimeout(raw json.RawMessage) (time.Duration, error) {
	if raw == nil {
		return 0, nil
	}
	micros, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || micros == 0 || len(raw) > 19 {
		return 0, errRefused
	}
	return min(time.Duration(min(micros, 1e15))*time.Microsecond, serving.MaxSLO), nil
}

func slowFlag(raw json.RawMessage) (flag bool, err error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	}
	return false, errRefused
}

func slowBatch(raw json.RawMessage, t serving.InputType) ([]serving.Input, error) {
	var elements []json.RawMessage
	if raw == nil || raw[0] != '[' || json.Unmarshal(raw, &elements) != nil || len(elements) > maxBatch {
		return nil, errRefused
	}
	inputs := []serving.Input{}
	for _, element := range elements {
		in, err := slowInput(element, t)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

func slowInput(raw json.RawMessage, t serving.InputType) (serving.Input, error) {
	in := serving.Input{Type: t}
	var err error
	switch t {
	case serving.Strings:
		var s string
		s, err = slowString(raw)
		in.Data = []byte(s)
	case serving.Bytes:
		in.Data, err = slowBase64(raw)
	default:
		in.Data, err = slowVector(raw, t)
	}
	return in, err
}

func slowBase64(raw json.RawMessage) ([]byte, error) {
	s, err := slowString(raw)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(s)
	}
	if len(data) == 0 {
		return nil, errRefused
	}
	return data, err
}

func slowVector(raw json.RawMessage, t serving.InputType) (data []byte, err error) {
	var elements []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &elements) != nil || len(elements) == 0 {
		return nil, errRefused
	}
	for _, element := range elements {
		s := string(element)
		switch s {
		case "true":
			s = "1"
		case "false":
			s = "0"
		}
		switch t {
		case serving.Ints:
			x, err := strconv.ParseInt(s, 10, 32)
			if err != nil {
				return nil, err
			}
			data = binary.LittleEndian.AppendUint32(data, uint32(x))
		case serving.Floats:
			x, err := strconv.ParseFloat(s, 32)
			if err != nil {
				return nil, err
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
		default:
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, err
			}
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
		}
	}
	return data, nil
}
