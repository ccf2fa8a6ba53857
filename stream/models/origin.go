package models

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// origin is the update that a version or an app was made by. It is kept in their labels, so
// that it is there with them or not at all.
type origin struct {
	job      string // the name of the model stream
	update   string // the id of the update
	stream   string // where that was
	place    string
	at       time.Time // when it was produced
	sequence uint64    // the sender's; 0: none
	content  string    // a checksum of what the update says
	kept     bool      // it was not to be current
	late     bool      // a newer update was there before
	again    bool      // another update had said the same before
}

// originOf is the origin of what a record asks for.
func originOf(job string, r *serving.StreamRecord, u *Update) origin {
	o := origin{job: job, update: u.UUID, stream: r.Stream, place: r.Place, at: r.At.UTC().Truncate(time.Millisecond), sequence: u.Sequence}
	o.content, o.kept = u.content(), u.Model != nil && u.Model.KeepCurrent
	return o
}

// The names of the labels.
const (
	labelJob       = "stream="
	labelUpdate    = "update="
	labelPlace     = "place="
	labelAt        = "at="
	labelSequence  = "sequence="
	labelContent   = "content="
	labelKept      = "keep_current"
	labelLate      = "outdated"
	unchangedLabel = "unchanged"
)

// labels is the origin as labels.
func (o origin) labels() []string {
	labels := []string{
		labelJob + o.job, labelUpdate + o.update, labelPlace + o.stream + " " + o.place, labelAt + o.at.Format(time.RFC3339Nano), labelContent + o.content,
	}
	if o.sequence > 0 {
		labels = append(labels, labelSequence+strconv.FormatUint(o.sequence, 10))
	}
	if o.kept {
		labels = append(labels, labelKept)
	}
	if o.late {
		labels = append(labels, labelLate)
	}
	if o.again {
		labels = append(labels, unchangedLabel)
	}
	return labels
}

// relabel is labels with this origin in the place of theirs; those of operators stay.
func (o origin) relabel(labels []string) []string {
	others := slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return new(origin).parse(label) })
	return append(others, o.labels()...)
}

// parseOrigin reads the origin of what was made by an update. What was not made so has none.
func parseOrigin(labels []string) (o origin, ok bool) {
	for _, label := range labels {
		o.parse(label)
	}
	return o, o.job != "" && o.content != "" && o.place != ""
}

// parse reads a label, if it is one of an origin.
func (o *origin) parse(label string) (ours bool) {
	name, value, _ := strings.Cut(label, "=")
	switch name + "=" {
	case labelJob:
		o.job = value
	case labelUpdate:
		o.update = value
	case labelPlace:
		if at := strings.LastIndexByte(value, ' '); at >= 0 {
			o.stream, o.place = value[:at], value[at+1:]
		}
	case labelAt:
		o.at, _ = time.Parse(time.RFC3339Nano, value)
	case labelSequence:
		o.sequence, _ = strconv.ParseUint(value, 10, 64)
	case labelContent:
		o.content = value
	case labelKept + "=":
		o.kept = true
	case labelLate + "=":
		o.late = true
	case unchangedLabel + "=":
		o.again = true
	default:
		return false
	}
	return true
}

// same says whether both are of one record. A stream that was deleted and made anew has the
// same places again.
func (o origin) same(p origin) bool {
	return o.stream == p.stream && o.place == p.place && o.update == p.update && o.content == p.content
}

// after says whether o came after p: by the numbers of the sender where both have one, else
// by their places where these are in one partition, else by when they were produced.
func (o origin) after(p origin) bool {
	if o.sequence > 0 && p.sequence > 0 {
		return o.sequence > p.sequence
	}
	if c, ok := comparePlaces(o, p); ok {
		return c > 0
	}
	return o.at.After(p.at)
}

// comparePlaces compares places in one stream of Redis, 1718-0, or one partition of Kafka, 3/1042.
func comparePlaces(o, p origin) (order int, ok bool) {
	if o.stream != p.stream {
		return 0, false
	}
	for _, separator := range []string{"/", "-"} {
		a, errA := numbers(o.place, separator)
		b, errB := numbers(p.place, separator)
		switch {
		case errA != nil || errB != nil:
		case separator == "-":
			return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])), true
		case a[0] == b[0]:
			return cmp.Compare(a[1], b[1]), true
		}
	}
	return 0, false
}

func numbers(place, separator string) (n [2]uint64, err error) {
	first, second, ok := strings.Cut(place, separator)
	if !ok {
		return n, fmt.Errorf("%q has no %q", place, separator)
	}
	if n[0], err = strconv.ParseUint(first, 10, 64); err == nil {
		n[1], err = strconv.ParseUint(second, 10, 64)
	}
	return n, err
}
