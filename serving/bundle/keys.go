package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// checkKeys refuses JSON in which an object has a key twice: every reader would choose a
// value of its own.
func checkKeys(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // numbers are judged elsewhere
	var open nesting
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && len(open) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if err := open.take(token); err != nil {
			return err
		}
	}
}

// maxNesting bounds how deep a manifest is: what shows one puts it into documents of its own.
const maxNesting = 32

// nesting is the objects and arrays around a place in JSON, the innermost last.
type nesting []container

// container is an object, or an array, which has no keys.
type container struct {
	keys  map[string]bool
	value bool // a key has been read, its value comes next
}

func (n *nesting) take(token json.Token) error {
	switch token {
	case json.Delim('}'), json.Delim(']'):
		*n = (*n)[:len(*n)-1]
		return nil
	}
	if len(*n) > 0 {
		if key, err := (*n)[len(*n)-1].take(token); key || err != nil {
			return err
		}
	}
	if len(*n) == maxNesting {
		return fmt.Errorf("it is nested more than %d deep", maxNesting)
	}
	switch token {
	case json.Delim('{'):
		*n = append(*n, container{keys: map[string]bool{}})
	case json.Delim('['):
		*n = append(*n, container{})
	}
	return nil
}

// take is the next token of the container itself, and says whether it is a key.
func (c *container) take(token json.Token) (key bool, err error) {
	if c.keys == nil {
		return false, nil
	}
	if c.value {
		c.value = false
		return false, nil
	}
	name, _ := token.(string) // the decoder takes nothing else for a key
	if c.keys[name] {
		return true, fmt.Errorf("it has %q twice", name)
	}
	c.keys[name], c.value = true, true
	return true, nil
}
