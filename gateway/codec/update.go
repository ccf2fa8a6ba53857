package codec

import "github.com/topsail-serving/topsail/serving"

// UpdateRequest is the body of an update request. It owns its memory. Of each
// feedback it has what the body can say: the app and the times are left zero.
type UpdateRequest struct {
	Feedback []serving.Feedback // one, or any number of a batch
	Batch    bool
}

// DecodeUpdate reads the body of a request to an app.
// A batch has at most maxBatch pieces of feedback. Its error is always an *Error.
func DecodeUpdate(body []byte, app *serving.App, maxBatch int) (UpdateRequest, error) {
	body = withoutMark(body)
	d := updateDecoder{parser: parser{b: body}, app: app, maxBatch: maxBatch}
	out, err := d.body()
	if err != nil {
		return UpdateRequest{}, refused(body, err)
	}
	return out, nil
}

// updateDecoder reads one update request.
type updateDecoder struct {
	parser
	strictness
	app      *serving.App
	maxBatch int
}

// body reads the whole body.
func (d *updateDecoder) body() (out UpdateRequest, err error) {
	var one serving.Feedback
	seen, err := d.members(1, func(f updateField) (err error) {
		if f == updateBatch {
			out.Feedback, err = d.batch()
			return err
		}
		return d.member(f, 1, &one)
	})
	if err != nil {
		return out, err
	}
	if err := d.end(); err != nil {
		return out, err
	}
	if err := d.refusal(); err != nil {
		return out, err
	}
	seen &^= updateStrict
	if seen&updateBatch == 0 {
		out.Feedback = []serving.Feedback{one}
		return out, complete(0, seen)
	}
	if seen != updateBatch {
		return out, contentError(0, "has feedback_batch together with uid, context, input, query_id, feedback_id, label or reward: put these into the elements of the batch")
	}
	out.Batch = true
	return out, nil
}

// members reads the object at i, whose depth is given, with read for the values of
// keys that have a meaning. It returns which there were: the first of equal keys
// counts.
func (d *updateDecoder) members(depth int, read func(updateField) error) (seen updateField, err error) {
	if d.peek() != '{' {
		return 0, d.mustBe("an object")
	}
	d.i++
	if d.take('}') {
		return 0, nil
	}
	for {
		key, err := d.key()
		if err != nil {
			return seen, err
		}
		f := updateFieldOf(key)
		if f == 0 {
			d.peek()
			d.meets(key, d.i, FeedbackMembers)
		}
		if f == 0 || seen&f != 0 {
			err = d.skip(depth)
		} else {
			err = read(f)
		}
		if err != nil {
			return seen, err
		}
		seen |= f
		if more, err := d.moreMembers(); !more {
			return seen, err
		}
	}
}

// batch reads the array of feedback at i.
func (d *updateDecoder) batch() ([]serving.Feedback, error) {
	if d.kind() != "Array" {
		return nil, d.mustBe("an array of objects")
	}
	first := d.i
	d.i++
	list := []serving.Feedback{}
	if d.take(']') {
		return list, nil
	}
	for {
		if len(list) == d.maxBatch {
			return nil, contentError(first, "has more than %d elements: send them in several requests", d.maxBatch)
		}
		f, err := d.batchElement()
		if err != nil {
			return nil, err
		}
		list = append(list, f)
		if more, err := d.moreElements(); !more {
			return list, err
		}
	}
}

func (d *updateDecoder) batchElement() (one serving.Feedback, err error) {
	const depth = 3 // below the body and the array
	d.peek()
	first := d.i
	seen, err := d.members(depth, func(f updateField) error { return d.member(f, depth, &one) })
	if err != nil {
		return one, err
	}
	return one, complete(first, seen)
}
