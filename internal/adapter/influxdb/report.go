package influxdb

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// A report is kept as text,
//
//	1 ROLE NAME SECOND [last];MODEL VERSION FIGURE…;MODEL VERSION FIGURE…
//
// with the version of the format, the second in Unix time, and for each model version
// the figures in the order of columns, without the zeros at the end. Names are escaped
// as in a URL's query. Later releases may add words at the end of the head, and
// figures: what a reader does not know it skips. So the backlog of a stream for a model
// version stands behind the figures of the first release, which are zero then, as
//
//	backlog STREAM RECORDS ANSWERED CATCH_UP
const (
	format    = "1"
	separator = ";" // not a new line, which the client library would spell out
	backlog   = "backlog"
	zeros     = 12 // before it
)

// columns are the figures of a demand.
var columns = [...]string{
	"arrivals", "unserved", "defaults", "concurrency_ns",
	"admitted", "refused", "batches", "inputs", "waited_ns", "service_ns", "profile_base_ns", "profile_per_input_ns",
	"diverted",
}

// says says whether a role has something to say about a column.
func says(role string, column int) bool {
	ofGateway := column < 4 || column == 12
	return role != "gateway" && role != "sidecar" || ofGateway == (role == "gateway")
}

func figures(d *serving.Demand) *[len(columns)]uint64 {
	return &[len(columns)]uint64{
		d.Arrivals, d.Unserved, d.Defaults, uint64(d.Concurrency),
		d.Admitted, d.Refused, d.Batches, d.Inputs, uint64(d.Waited), uint64(d.Service), uint64(d.Profile.Base), uint64(d.Profile.PerInput), d.Diverted,
	}
}

func demandOf(id serving.ModelID, f *[len(columns)]uint64) serving.Demand {
	return serving.Demand{
		ModelID:  id,
		Arrivals: f[0], Unserved: f[1], Defaults: f[2], Concurrency: time.Duration(f[3]),
		Admitted: f[4], Refused: f[5], Batches: f[6], Inputs: f[7], Waited: time.Duration(f[8]), Service: time.Duration(f[9]),
		Profile:  serving.LatencyLine{Base: time.Duration(f[10]), PerInput: time.Duration(f[11])},
		Diverted: f[12],
	}
}

func encode(r *serving.DemandReport) string {
	b := make([]byte, 0, 64+48*len(r.Demands)+96*len(r.Backlogs))
	b = fmt.Appendf(b, "%s %s %s %d", format, url.QueryEscape(r.Source.Role), url.QueryEscape(r.Source.Name), r.Second.Unix())
	if r.Last {
		b = append(b, " last"...)
	}
	for i := range r.Demands {
		d := &r.Demands[i]
		b = appendID(b, d.ModelID)
		all := figures(d)
		n := len(all)
		for n > 0 && all[n-1] == 0 {
			n--
		}
		for _, v := range all[:n] {
			b = strconv.AppendUint(append(b, ' '), v, 10)
		}
	}
	for i := range r.Backlogs {
		l := &r.Backlogs[i]
		b = append(appendID(b, l.ModelID), strings.Repeat(" 0", zeros)...)
		b = fmt.Appendf(b, " %s %s %d %d %d", backlog, url.QueryEscape(l.Stream), l.Records, l.Answered, l.CatchUp)
	}
	return string(b)
}

func appendID(b []byte, id serving.ModelID) []byte {
	b = append(b, separator...)
	b = append(b, url.QueryEscape(id.Model)...)
	b = append(b, ' ')
	return append(b, url.QueryEscape(id.Version)...)
}

func decode(text string) (serving.DemandReport, error) {
	head, rest, more := strings.Cut(text, separator)
	r, err := decodeHead(strings.Split(head, " "))
	if err != nil {
		return r, err
	}
	if !more {
		return r, nil
	}
	for text := range strings.SplitSeq(rest, separator) {
		words := strings.Split(text, " ")
		isBacklog := len(words) > 2+zeros && words[2+zeros] == backlog
		if isBacklog {
			text = words[0] + " " + words[1]
		}
		d, err := decodeDemand(text)
		var b serving.Backlog
		if err == nil && isBacklog {
			b, err = decodeBacklog(d.ModelID, words[3+zeros:])
		}
		switch {
		case err != nil:
			return r, fmt.Errorf("a demand report of %v: %.100q: %w", r.Source, text, err)
		case isBacklog:
			r.Backlogs = append(r.Backlogs, b)
		default:
			r.Demands = append(r.Demands, d)
		}
	}
	return r, nil
}

func decodeHead(words []string) (r serving.DemandReport, err error) {
	if len(words) < 4 || words[0] != format {
		return r, fmt.Errorf("a demand report begins with %.100q: it does not have version %s", words, format)
	}
	if r.Source.Role, err = url.QueryUnescape(words[1]); err != nil {
		return r, err
	}
	if r.Source.Name, err = url.QueryUnescape(words[2]); err != nil {
		return r, err
	}
	second, err := strconv.ParseInt(words[3], 10, 64)
	r.Second = time.Unix(second, 0).UTC()
	r.Last = len(words) > 4 && words[4] == "last"
	return r, err
}

func decodeDemand(text string) (serving.Demand, error) {
	var id serving.ModelID
	var all [len(columns)]uint64
	at := -2
	for word := range strings.SplitSeq(text, " ") {
		var err error
		switch {
		case at == -2:
			id.Model, err = url.QueryUnescape(word)
		case at == -1:
			id.Version, err = url.QueryUnescape(word)
		case at < len(all):
			all[at], err = strconv.ParseUint(word, 10, 64)
		}
		if err != nil {
			return serving.Demand{}, err
		}
		at++
	}
	if at < 0 {
		return serving.Demand{}, errors.New("the version is missing")
	}
	return demandOf(id, &all), nil
}

func decodeBacklog(id serving.ModelID, words []string) (b serving.Backlog, err error) {
	if len(words) < 4 {
		return b, errors.New("the backlog is cut off")
	}
	b.ModelID = id
	if b.Stream, err = url.QueryUnescape(words[0]); err != nil {
		return b, err
	}
	var figures [3]uint64
	for i := range figures {
		if figures[i], err = strconv.ParseUint(words[1+i], 10, 64); err != nil {
			return b, err
		}
	}
	b.Records, b.Answered, b.CatchUp = figures[0], figures[1], time.Duration(min(figures[2], math.MaxInt64))
	return b, nil
}
