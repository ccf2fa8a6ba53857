package codec

import (
	"bytes"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// MaxName bounds version, uid, salt and context, in bytes.
const MaxName = 256

func (p *parser) version() (string, error) {
	if p.kind() != "String" {
		return "", p.mustBe("a string")
	}
	return p.name()
}

// maxCandidates bounds candidate_models.
const maxCandidates = 256

// candidates reads a list of models, each with or without a version behind a colon.
func (p *parser) candidates() ([]serving.ModelID, error) {
	const want = `an array of models, such as ["forest", "linear:2"]`
	if p.kind() != "Array" {
		return nil, p.mustBe(want)
	}
	first := p.i
	p.i++
	if p.take(']') {
		return nil, contentError(first, "is empty: name at least one model, or leave it out")
	}
	var ids []serving.ModelID
	for {
		if len(ids) == maxCandidates {
			return nil, contentError(first, "has more than %d models", maxCandidates)
		}
		if p.kind() != "String" {
			return nil, p.mustBe("a string")
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		model, version, _ := strings.Cut(name, ":")
		ids = append(ids, serving.ModelID{Model: model, Version: version})
		if more, err := p.moreElements(); !more {
			return ids, err
		}
	}
}

// name reads a string or a whole number as text.
func (p *parser) name() (string, error) {
	var name []byte
	c, first := p.peek(), p.i
	switch {
	case c == '"':
		t, err := p.text()
		if err != nil {
			return "", err
		}
		if name = t.raw; t.escaped {
			name = t.unescape()
		}
	case c == '-' || isDigit(c):
		if _, err := p.number(); err != nil {
			return "", err
		}
		if name = p.b[first:p.i]; bytes.ContainsAny(name, ".eE") {
			return "", wrongName(first)
		}
	default:
		return "", wrongName(first)
	}
	if len(name) > MaxName {
		return "", wrongName(first)
	}
	return string(name), nil
}

func wrongName(at int) error {
	return contentError(at, "must be a string or a whole number, of at most %d bytes", MaxName)
}

// slo reads a time limit. One above what any app may have is as good as none,
// since it can only shorten.
func (p *parser) slo() (time.Duration, error) {
	c, first := p.peek(), p.i
	if !isDigit(c) {
		return 0, errSLO(first)
	}
	n, err := p.number()
	if err != nil {
		return 0, err
	}
	if n.form != whole || n.mantissa == 0 {
		return 0, errSLO(first)
	}
	micros := min(n.mantissa, uint64(serving.MaxSLO.Microseconds()))
	return time.Duration(micros) * time.Microsecond, nil
}

func errSLO(at int) error {
	return contentError(at, "must be a whole number of microseconds above 0")
}

func (p *parser) priority() (int, error) {
	c, first := p.peek(), p.i
	if isDigit(c) {
		if n, err := p.number(); err != nil || n.form == whole && n.mantissa < serving.Priorities {
			return int(n.mantissa), err
		}
	}
	return 0, contentError(first, "must be a whole number between 0, the highest, and %d", serving.LowestPriority)
}

// clampedPriority reads the priority of a client that may know more of them than there are.
func (p *parser) clampedPriority() (int, error) {
	c, first := p.peek(), p.i
	if isDigit(c) {
		if n, err := p.number(); err != nil || n.form == whole {
			return int(min(n.mantissa, serving.LowestPriority)), err
		}
	}
	return 0, contentError(first, "must be a whole number, 0 being the highest")
}

func (p *parser) flag() (bool, error) {
	switch p.peek() {
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	}
	return false, p.mustBe("true or false")
}
