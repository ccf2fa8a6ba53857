package api

import (
	"bytes"
	"encoding/json"
)

// patch is a JSON merge patch, as RFC 7396 has it.
type patch struct{ members map[string]any }

// readPatch reads a patch of the document that like points to.
func readPatch(text []byte, like any) (patch, error) {
	if err := wellFormed(text); err != nil {
		return patch{}, err
	}
	text, err := checkShape(text, like, true)
	if err != nil {
		return patch{}, err
	}
	value, err := generic(text)
	members, ok := value.(map[string]any)
	if err != nil || !ok {
		return patch{}, invalid("a patch must be a JSON object with the members to change")
	}
	return patch{members}, nil
}

// merge is the document with the patch applied, as JSON.
func (p patch) merge(document any) ([]byte, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	value, err := generic(text)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merge(value, p.members))
}

func merge(target any, members map[string]any) any {
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range members {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			object[name] = merge(object[name], value)
		default:
			object[name] = value
		}
	}
	return object
}

// generic is JSON without a type, with its numbers as they stand.
func generic(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}
